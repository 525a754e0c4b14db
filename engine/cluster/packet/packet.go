package packet

import (
	"encoding/json"
	"fmt"

	"github.com/racflow/racflow/engine/run"
	"github.com/racflow/racflow/engine/source"
)

// order is a run.Order. It is written with rows, and read with what these are made of later.
type order[R any] struct {
	shared
	Pass run.Pass `json:"pass,omitempty"`
	Rows []R      `json:"rows"`
}

// maxItems is more than travel together (stage.Gathered). What a reader makes of an item takes
// more memory than the few bytes of one that has nothing.
const maxItems = 1 << 17

// EncodeOrder writes an order. The error says that it is too large.
func EncodeOrder(o run.Order) ([]byte, error) {
	w := newWriter()
	rows := each(o.Rows, w.row)
	if w.err != nil {
		return nil, w.err
	}
	return seal(orders, order[row]{w.shared(), o.Pass, rows})
}

// DecodeOrder reads what EncodeOrder wrote. The error says that something else did, or
// another version of racflow.
func DecodeOrder(data []byte) (run.Order, error) {
	var in order[json.RawMessage]
	if err := open(orders, data, &in); err != nil {
		return run.Order{}, err
	}
	r := in.reader()
	out := run.Order{Pass: in.Pass, Rows: r.rows(in.Rows)}
	if in.Pass > run.Asking {
		r.fail("there is no pass %d", in.Pass)
	}
	if r.err != nil {
		return run.Order{}, r.err
	}
	return out, nil
}

// answered is a run.Answers with its rows.
type answered[R, I any] struct {
	shared
	Rows    []R `json:"rows"`
	Results []I `json:"results,omitzero"`
	state
}

// EncodeAnswers writes what became of rows, with the rows: whoever reads it can write the
// output. The error says that it is too large, or has a value that cannot travel.
func EncodeAnswers(rows []source.Row, a run.Answers) ([]byte, error) {
	if len(a.Results) != len(rows) && a.Results != nil {
		return nil, fmt.Errorf("%d results are not those of %d rows", len(a.Results), len(rows))
	}
	w := newWriter()
	out := answered[row, *item]{Rows: each(rows, w.row), state: w.state(a)}
	if a.Results != nil {
		out.Results = make([]*item, len(rows))
	}
	for i := range a.Results {
		out.Results[i] = w.result(&a.Results[i], rows[i])
	}
	if w.err != nil {
		return nil, w.err
	}
	out.shared = w.shared()
	return seal(answers, out)
}

// DecodeAnswers reads what EncodeAnswers wrote. The error says that something else did, or
// another version of racflow; or it is why there are no rows: Ended, of a batch that nobody could
// read.
func DecodeAnswers(data []byte) ([]source.Row, run.Answers, error) {
	var in answered[json.RawMessage, json.RawMessage]
	if err := open(answers, data, &in); err != nil {
		return nil, run.Answers{}, err
	}
	r := in.reader()
	rows := r.rows(in.Rows)
	out := r.state(&in.state, len(rows))
	out.Results = r.results(in.Results, rows)
	if r.err != nil {
		return nil, run.Answers{}, r.err
	}
	if len(rows) == 0 && out.Ended != nil {
		return nil, run.Answers{}, out.Ended
	}
	return rows, out, nil
}
