//go:build linux

package cli

import (
	"path"
	"regexp"
	"slices"
	"testing"
)

// TestClusterExampleUnit compares what the unit of the servers reads with the files that examples/cluster
// tells people to make.
func TestClusterExampleUnit(t *testing.T) {
	unit, steps := readFile(t, clusterExample, "systemd/nats@.service"), readFile(t, clusterExample, "README.md")
	config := regexp.MustCompile(`(?m)^ExecStart=\S+ -c (\S+)$`).FindStringSubmatch(unit)
	if len(config) == 0 || path.Dir(config[1]) != "/etc/nats" {
		t.Fatalf("the unit names no configuration:\n%s", unit)
	}
	uses := regexp.MustCompile(`\$((?:NATS|RACFLOW)_\w+)`)
	var used []string
	for _, file := range []string{path.Base(config[1]), "accounts.conf"} {
		for _, v := range uses.FindAllStringSubmatch(readFile(t, clusterExample, file), -1) {
			used = append(used, v[1])
		}
	}
	if !regexp.MustCompile(`(?m)^EnvironmentFile=/etc/nats/%i\.env$`).MatchString(unit) {
		t.Errorf("the unit does not read /etc/nats/NAME.env:\n%s", unit)
	}
	var given []string
	for _, v := range regexp.MustCompile(`(?m)^ {8}((?:NATS|RACFLOW)_\w+)=`).FindAllStringSubmatch(steps, -1) {
		given = append(given, v[1])
	}
	for _, names := range []*[]string{&used, &given} {
		slices.Sort(*names)
		*names = slices.Compact(*names)
	}
	if !slices.Equal(used, given) {
		t.Errorf("the servers use   %s\nthe steps give %s", used, given)
	}
}
