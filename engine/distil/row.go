package distil

import (
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/racflow/racflow/engine/journal/manifest"
	"github.com/racflow/racflow/engine/outcome"
	"github.com/racflow/racflow/engine/source"
)

// Row is an answer as a row of a source. What stands behind the label is its provenance,
// which a source keeps as metadata.
type Row struct {
	ID         string  `json:"id"`
	Text       string  `json:"text"`
	Label      string  `json:"label"`
	Confidence float64 `json:"confidence,omitempty"` // 0: the election estimates none
	Agreement  float64 `json:"agreement"`
	Voters     string  `json:"voters"`           // whose first answer is the label, in file order; or which person has decided, and when
	Models     string  `json:"models,omitempty"` // that these asked, where it is known
	Pipeline   string  `json:"pipeline,omitempty"`
	Run        string  `json:"run"`
	Started    string  `json:"started"` // when the run began, RFC 3339

	line int
}

var columns = []string{"id", "text", "label", "confidence", "agreement", "voters", "models", "pipeline", "run", "started"}

// provenance returns what makes a row, without id, text and label, of a result.
func provenance(m manifest.Manifest) func(outcome.Result) Row {
	models, doubtful := map[string]string{}, map[string]bool{}
	for _, s := range m.Stages {
		name, isVoter := strings.CutPrefix(s.Stage, "sample.")
		name, _, isFallback := strings.Cut(name, ", fallback.")
		switch {
		case !isVoter:
		case isFallback: // nobody knows which of them answered
			doubtful[name] = true
		default:
			models[name] = s.Model
		}
	}
	return func(r outcome.Result) Row {
		row := Row{Confidence: round(r.Confidence), Agreement: round(r.Agreement), Pipeline: m.Pipeline, Run: m.ID, Started: m.Started.UTC().Format(time.RFC3339)}
		var asked []string
		agreed := agreeing(r)
		for _, voter := range agreed {
			if model := models[voter]; model != "" && !doubtful[voter] && !slices.Contains(asked, model) {
				asked = append(asked, model)
			}
		}
		if r.Decided != nil {
			row.Voters = r.Decided.String()
			return row
		}
		row.Voters, row.Models = strings.Join(agreed, ", "), strings.Join(asked, ", ")
		return row
	}
}

// agreeing names the voters for whose votes no other label weighs more than the answer.
func agreeing(r outcome.Result) (agreed []string) {
	for from := 0; from < len(r.Votes); {
		voter, to := r.Votes[from].Voter, from
		weights := map[string]float64{}
		for ; to < len(r.Votes) && r.Votes[to].Voter == voter; to++ {
			if v := r.Votes[to]; v.Accepted && v.Answer != "" {
				weights[v.Answer] += v.Weight
			}
		}
		most := 0.0
		for _, w := range weights {
			most = max(most, w)
		}
		if w := weights[r.Answer]; w > 0 && w == most {
			agreed = append(agreed, voter)
		}
		from = to
	}
	return agreed
}

// Write writes rows as a file that a source reads. The format is source.JSONL or
// source.TSV, in which tabs and line ends of a text become spaces; ids and labels that
// have some are an error there.
func Write(w io.Writer, format source.Format, rows []Row) error {
	if format != source.TSV {
		enc := json.NewEncoder(w)
		enc.SetEscapeHTML(false)
		for _, r := range rows {
			if err := enc.Encode(r); err != nil {
				return err
			}
		}
		return nil
	}
	if _, err := fmt.Fprintln(w, strings.Join(columns, "\t")); err != nil {
		return err
	}
	for _, r := range rows {
		for _, name := range []string{r.ID, r.Label} {
			if strings.ContainsAny(name, "\t\r\n") {
				return fmt.Errorf("%q cannot be written as TSV, since it has a tab or a line end: write JSONL", name)
			}
		}
		confidence := ""
		if r.Confidence > 0 {
			confidence = decimal(r.Confidence)
		}
		fields := []string{r.ID, r.Text, r.Label, confidence, decimal(r.Agreement), r.Voters, r.Models, r.Pipeline, r.Run, r.Started}
		for i := range fields {
			fields[i] = spaced.Replace(fields[i])
		}
		if _, err := fmt.Fprintln(w, strings.Join(fields, "\t")); err != nil {
			return err
		}
	}
	return nil
}

var spaced = strings.NewReplacer("\t", " ", "\r\n", " ", "\n", " ", "\r", " ")

func decimal(x float64) string { return strconv.FormatFloat(x, 'f', -1, 64) }
