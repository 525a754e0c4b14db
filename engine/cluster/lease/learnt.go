package lease

import (
	"context"
	"encoding/json"

	"github.com/racflow/racflow/engine/governor"
)

// told is an event with who tells it.
type told struct {
	Holder string `json:"holder"`
	governor.Event
}

// tell tells the others what the Governor learns of endpoints.
func (h *Holder) tell(ctx context.Context) {
	for {
		select {
		case e := <-h.g.Learnt():
			data, err := json.Marshal(told{h.id, e})
			if err == nil {
				err = h.run.Tell(breakers, data)
			}
			if err != nil {
				h.log.Debug("what was learnt of a service is not told", "endpoint", e.Endpoint, "error", err)
			}
		case <-ctx.Done():
			return
		}
	}
}

func (h *Holder) hear(data []byte) {
	var t told
	if err := json.Unmarshal(data, &t); err != nil {
		h.log.Debug("what another learnt of a service cannot be read", "error", err)
		return
	}
	if t.Holder != h.id {
		h.g.Hear(t.Event)
	}
}
