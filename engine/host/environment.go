package host

import (
	"slices"
	"strings"

	"github.com/racflow/racflow/sdk/nodump"
)

// What a plugin may see of racflow's environment. All else stays here, since
// it may hold secrets that belong to other stages.
var (
	passed = []string{
		"PATH", "HOME", "TMPDIR", "LANG", "TZ", "GOGC", "GOMAXPROCS", "GODEBUG", "GORACE", "GOCOVERDIR", "RACFLOW_MODELS", nodump.Variable,
	}
	passedPrefixes = []string{"XDG_", "LC_", "SSL_CERT_"}
	proxies        = []string{"HTTP_PROXY", "HTTPS_PROXY", "NO_PROXY", "ALL_PROXY"} // and in lower case
)

// environment filters the host's for a plugin; network adds the proxies.
func environment(all []string, network bool) []string {
	var kept []string
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
