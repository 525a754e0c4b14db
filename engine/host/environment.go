package host

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/racflow/racflow/engine/confine"
	"github.com/racflow/racflow/sdk/support"
)

// noBytecode keeps Python from writing beside the modules that it loads: what an installed plugin
// has more than when it was locked is refused, and root may write there whatever the rights are.
const noBytecode = "PYTHONDONTWRITEBYTECODE=1"

// What a plugin may see of racflow's environment. All else stays here, since
// it may hold secrets that belong to other stages.
var (
	passed = []string{
		"PATH", "HOME", "TMPDIR", "LANG", "TZ", "GOGC", "GOMAXPROCS", "GODEBUG", "GORACE", "GOCOVERDIR", models, support.NoDumpVariable,
	}
	passedPrefixes = []string{"XDG_", "LC_", "SSL_CERT_"}
	proxies        = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"} // and in lower case
)

// models is the folder that models are loaded to, and from.
const models = "RACFLOW_MODELS"

// environment filters the host's for a plugin; network adds the proxies.
func environment(all []string, network bool) []string {
	kept := []string{noBytecode}
	for _, variable := range all {
		name, _, _ := strings.Cut(variable, "=")
		hasPrefix := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		if slices.Contains(passed, name) || slices.ContainsFunc(passedPrefixes, hasPrefix) ||
			network && slices.Contains(proxies, strings.ToUpper(name)) {
			kept = append(kept, variable)
		}
	}
	return kept
}

// confinedEnvironment is environment for a plugin that is confined by a policy: nothing in it names
// a folder that the plugin cannot read. Certificates that it names become readable.
func confinedEnvironment(all []string, policy *confine.Policy) []string {
	var kept []string
	for _, variable := range environment(all, false) {
		name, value, _ := strings.Cut(variable, "=")
		switch {
		case name == "HOME" || name == "TMPDIR" || strings.HasPrefix(name, "XDG_"):
			continue // it gets folders of its own
		case name == models && !slices.ContainsFunc(slices.Concat(policy.Read, policy.Write), func(dir string) bool { return isBelow(value, dir) }):
			continue
		case strings.HasPrefix(name, "SSL_CERT_"):
			policy.Read = append(policy.Read, filepath.SplitList(value)...)
		}
		kept = append(kept, variable)
	}
	return kept
}

// isBelow reports whether a path is a folder or lies in it.
func isBelow(path, dir string) bool {
	rel, err := filepath.Rel(dir, path)
	return dir != "" && err == nil && filepath.IsLocal(rel)
}
