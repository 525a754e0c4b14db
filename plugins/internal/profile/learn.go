package profile

import (
	"context"

	"github.com/racflow/racflow/plugins/internal/api"
	"github.com/racflow/racflow/plugins/internal/dialect"
)

// Refused learns from an error.
func (k *Keeper) Refused(ctx context.Context, sent dialect.Request, err error) {
	said, told := api.RefusalOf(err)
	if !told || !api.BadRequest(err) {
		return
	}
	k.keep(ctx, false, func(p Profile) Profile {
		after, _ := p.Refused(sent, said)
		k.warn(p, after)
		return after
	})
}

// Saw learns from a reply.
func (k *Keeper) Saw(ctx context.Context, sent dialect.Request, reply dialect.Reply) {
	k.mu.Lock()
	k.served = true
	k.mu.Unlock()
	k.keep(ctx, false, func(p Profile) Profile {
		after := p.Saw(sent, reply)
		if k.seen.Requests == 0 {
			k.seen = p.Seen
		}
		if k.seen = k.seen.add(p, sent, reply); k.seen.due() {
			after.Seen = k.seen
		}
		return after
	})
}

// Obeyed learns that a model gives structured answers in a form, after it refused the
// stricter ones without saying that it was for them.
func (k *Keeper) Obeyed(ctx context.Context, form dialect.Form) {
	k.keep(ctx, false, func(p Profile) Profile {
		after := p
		after.Structured = structureOf(form)
		k.warn(p, after)
		return after
	})
}

// warn reports what the model turned out to refuse.
func (k *Keeper) warn(before, after Profile) {
	for _, f := range fields {
		if *f.of(&before) != No && *f.of(&after) == No {
			k.config.Warn("refused "+f.name, "the model refuses a field of the request: it is asked without", "field", f.name, "model", k.config.Model)
		}
	}
	if before.Structured != after.Structured {
		k.config.Warn("refused "+string(before.Structured), "the model refuses this form of structured answers: it is asked in another way", "now", after.Structured, "model", k.config.Model)
	}
}
