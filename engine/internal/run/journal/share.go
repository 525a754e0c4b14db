package journal

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
)

// Share is the part of the input that a run answers: every Of-th row, from row Number on. The zero value is the
// whole input. Shares are not consecutive rows, because rows are often sorted by label, and shares would then
// differ.
type Share struct{ Number, Of int }

// IsSet reports whether the run answers only a part of the input.
func (s Share) IsSet() bool { return s.Of > 0 }

// Has reports whether the share has the nth row of the input, counted from 0.
func (s Share) Has(n int) bool { return !s.IsSet() || n%s.Of == s.Number-1 }

// String returns NUMBER/OF; empty: the whole input.
func (s Share) String() string {
	if !s.IsSet() {
		return ""
	}
	return fmt.Sprintf("%d/%d", s.Number, s.Of)
}

// MarshalText implements encoding.TextMarshaler.
func (s Share) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *Share) UnmarshalText(text []byte) error {
	number, of, _ := strings.Cut(string(text), "/")
	n, err := strconv.Atoi(number)
	all, failed := strconv.Atoi(of)
	if err != nil || failed != nil || n < 0 || n > all || all < 1 {
		return errors.New("write it as 2/3, the second of three parts")
	}
	if n == 0 { // the last share, for a scheduler that counts from 0
		n = all
	}
	*s = Share{n, all}
	return nil
}

// CheckShares returns the runs sorted by the numbers of their shares. The error says why the runs are not the shares
// of one run over one input: a share is missing, given twice, unfinished, or made in another way.
func CheckShares(runs []*Journal) ([]*Journal, error) {
	first := runs[0]
	all := make([]*Journal, first.Manifest.Share.Of)
	for _, j := range runs {
		m, name := j.Manifest, j.Folder()
		if !m.Share.IsSet() {
			return nil, fmt.Errorf("%s is a run over the whole input, and not over a part of it", name)
		}
		if m.Share.Of != len(all) {
			return nil, fmt.Errorf("%s is part %s, and %s is part %s: they divide the input in different ways", first.Folder(), first.Manifest.Share, name, m.Share)
		}
		m.Share = first.Manifest.Share
		changed := first.Manifest.Differences(m)
		if m.Pipeline != first.Manifest.Pipeline {
			changed = append(changed, fmt.Sprintf("the pipeline is %q, it was %q", m.Pipeline, first.Manifest.Pipeline))
		}
		if len(changed) > 0 {
			return nil, fmt.Errorf("%s and %s are not parts of one run, because this has changed: %s", first.Folder(), name, strings.Join(changed, "; "))
		}
		if end := End(j.Folder()); end == nil || !end.Complete || end.Left > 0 {
			return nil, fmt.Errorf("%s, part %s, has not answered all its items: resume it first (racflow runs resume)", name, j.Manifest.Share)
		}
		at := &all[j.Manifest.Share.Number-1]
		if *at != nil {
			return nil, fmt.Errorf("%s and %s are both part %s", (*at).Folder(), name, j.Manifest.Share)
		}
		*at = j
	}
	var missing []string
	for i, j := range all {
		if j == nil {
			missing = append(missing, Share{i + 1, len(all)}.String())
		}
	}
	if len(missing) > 0 {
		return nil, fmt.Errorf("these parts are missing: %s; name their runs, too", strings.Join(missing, ", "))
	}
	return all, nil
}
