package bus

import (
	"os"
	"regexp"
	"testing"
)

// TestScaledNames compares the names by which examples/cluster/kubernetes counts what waits with those of streams and consumers.
func TestScaledNames(t *testing.T) {
	text, err := os.ReadFile("../../../../examples/cluster/kubernetes/worker.yaml")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`consumer_name="(.*?)", stream_name=~"(.*?)"`).FindAllSubmatch(text, -1)
	if len(named) != 2 {
		t.Fatalf("%d names, want those of what waits and what is under way", len(named))
	}
	for _, n := range named {
		if stream := regexp.MustCompile("^" + string(n[2]) + "$"); string(n[1]) != consumer || !stream.MatchString(itemsStream("aB3")) || stream.MatchString(resultsStream("aB3")) {
			t.Errorf("it counts %s of %s", n[1], n[2])
		}
	}
}
