package registry

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/hashicorp/go-version"
	"oras.land/oras-go/v2/registry"
)

// Version reports whether a text is a version as releases are tagged: after semver.org, without build metadata, which a tag cannot hold.
func Version(text string) bool {
	v, err := version.NewSemver(text)
	return err == nil && v.String() == text && v.Metadata() == ""
}

// Matches reports whether a version meets a constraint such as "~> 1.2"; an empty one is met by every
// version that is no prerelease. The error is that of the constraint.
func Matches(constraint, v string) (bool, error) {
	parsed, err := version.NewSemver(v)
	if err != nil {
		return false, nil //nolint:nilerr // what is no version meets nothing
	}
	if strings.TrimSpace(constraint) == "" {
		return parsed.Prerelease() == "", nil
	}
	c, err := version.NewConstraint(constraint)
	if err != nil {
		return false, fmt.Errorf("%q is no constraint of versions; write it as in \"~> 1.2\", \">= 1.2, < 2\" or \"1.2.3\"", constraint)
	}
	return c.Check(parsed), nil
}

// Versions lists the releases, the newest first. Tags that are no versions are none.
func (r *Repository) Versions(ctx context.Context) ([]string, error) {
	tags, err := registry.Tags(ctx, r.from)
	if err != nil {
		return nil, r.explain("list the versions", err)
	}
	var all []*version.Version
	for _, tag := range tags {
		if Version(tag) {
			v, _ := version.NewSemver(tag) // Version has read it
			all = append(all, v)
		}
	}
	slices.SortFunc(all, func(a, b *version.Version) int { return b.Compare(a) })
	texts := make([]string, len(all))
	for i, v := range all {
		texts[i] = v.String()
	}
	return texts, nil
}

// Newest is the newest version that meets a constraint.
func (r *Repository) Newest(ctx context.Context, constraint string) (string, error) {
	all, err := r.Versions(ctx)
	if err != nil {
		return "", err
	}
	for _, v := range all {
		ok, err := Matches(constraint, v)
		if ok || err != nil {
			return v, err
		}
	}
	switch {
	case len(all) == 0:
		return "", fmt.Errorf("%s has no release: no tag is a version such as 1.2.3", r.name)
	case constraint == "":
		return "", fmt.Errorf("%s has prereleases alone, such as %s; name one in version to take it", r.name, all[0])
	}
	const shown = 5
	return "", fmt.Errorf("no release of %s meets %q; there are %s%s", r.name, constraint, strings.Join(all[:min(shown, len(all))], ", "), more(len(all)-shown))
}

func more(n int) string {
	if n <= 0 {
		return ""
	}
	return fmt.Sprintf(" and %d older ones", n)
}
