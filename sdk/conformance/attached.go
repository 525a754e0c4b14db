package conformance

import "github.com/racflow/racflow/sdk/conformance/internal/attached"

// Foreign makes collections as somebody else would, for a store that attaches them.
type Foreign = attached.Foreign

// AttachedChecks returns the lines of the table for a store with sdk.Attaches, on collections that
// foreign makes. They come beside Checks: the store has collections of its own, too.
func AttachedChecks(foreign Foreign) (all []Check) {
	for _, c := range attached.Cases {
		all = append(all, Check{Name: "attached/" + c.Name, Why: c.Why, Fix: c.Fix, Within: Longest, Run: func(t T, s *Subject) error {
			c.Run(t, s, foreign)
			return nil
		}})
	}
	return all
}
