package doctor

import (
	"context"
	"fmt"
	"iter"

	"github.com/racflow/racflow/engine/doctor/confident"
	"github.com/racflow/racflow/engine/language"
)

// Options are what is looked at.
type Options struct {
	Knowledge []Source
	Input     *Set // nil: there is none
	Quick     bool // only what is certain, and found in the time that reading takes
}

// Source is a knowledge with what its stages can say.
type Source struct {
	*Set
	// Votes returns what voters say of rows with a label that they have not seen; nil: nobody is
	// asked.
	Votes func(context.Context) ([]confident.Row, error)
	// Embed returns the vectors of texts; nil: nobody is asked.
	Embed func(context.Context, []string) ([][]float32, error)
}

// Look checks rows. What a stage cannot say is in Report.Skipped, with the reason.
func Look(ctx context.Context, o Options) (Report, error) {
	r := Report{}
	all := map[string]int{} // labels
	for _, k := range o.Knowledge {
		r.Rows += len(k.Rows)
		labels := k.counts()
		for label, n := range labels {
			all[label] += n
		}
		if err := k.look(ctx, o, labels, &r); err != nil {
			return r, err
		}
	}
	if o.Input != nil {
		r.Items = len(o.Input.Rows)
		if f, found := unknown(o.Input, all); found {
			r.add(f)
		}
		if !o.Quick {
			o.Input.texts(&r)
		}
	}
	r.sort()
	if o.Quick {
		r.certain()
	}
	return r, ctx.Err()
}

// certain leaves errors alone, and of these three.
func (r *Report) certain() {
	var kept []Finding
	for _, f := range r.Findings {
		if f.Severity == Error && len(kept) < maxQuick {
			f.Rows = nil
			kept = append(kept, f)
		}
	}
	r.Findings = kept
}

// maxQuick is how many findings a quick look has at most.
const maxQuick = 3

func (k Source) look(ctx context.Context, o Options, labels map[string]int, r *Report) error {
	swapped, is := k.swapped(labels)
	if is {
		r.add(swapped)
		return nil // all else would follow from it
	}
	if f, found := k.spelling(labels); found {
		r.add(f)
	}
	for _, f := range k.copied(k.copies()) {
		r.add(f)
	}
	if o.Input != nil && !k.documents {
		if f, found := known(o.Input, k.Set); found {
			r.add(f)
		}
	}
	if o.Quick {
		return nil
	}
	for _, f := range k.few(labels) {
		r.add(f)
	}
	k.texts(r)
	input := o.Input
	if k.documents {
		input = nil
	}
	found, err := alike(ctx, k.Set, input)
	if err != nil {
		return err
	}
	for _, f := range found {
		r.add(f)
	}
	if k.Embed != nil {
		k.cut(ctx, r)
	}
	if k.Votes != nil && len(labels) > 1 {
		k.suspects(ctx, r)
	}
	return nil
}

// texts finds rows that cannot be used, and a mix of languages.
func (s *Set) texts(r *Report) {
	if s.Bad > 0 {
		r.add(Finding{
			Check: "invalid", Severity: Warning, Count: s.Bad, Rows: s.Invalid,
			Message: fmt.Sprintf("%s: %s", s.Name, many(s.Bad, s.unit()+" cannot be used", s.unit()+"s cannot be used")),
			Advice:  "correct or remove them: they are left out",
		})
	}
	var texts iter.Seq[string] = func(yield func(string) bool) {
		for _, row := range s.Rows {
			if !yield(row.Text) {
				return
			}
		}
	}
	mix := language.Mix(texts)
	if len(mix) < 2 {
		return
	}
	f := Finding{
		Check: "languages", Severity: Info, Message: s.Name + ": the texts are in several languages:",
		Advice: "an embedder for one language finds little in others: minilm knows English alone",
	}
	for i, share := range mix {
		if i > 0 {
			f.Message += ","
		}
		f.Message += fmt.Sprintf(" %.0f %% %s", 100*share.Share, share.Language)
	}
	wanted := map[string]bool{}
	for _, share := range mix[1:] {
		wanted[share.Language] = true
	}
	for _, row := range s.Rows[:min(len(s.Rows), 5000)] {
		if len(f.Rows) == maxPlaces {
			break
		}
		if l := language.Of(row.Text); wanted[l] {
			f.Rows = append(f.Rows, row.place(l))
		}
	}
	f.Count = len(s.Rows)
	r.add(f)
}
