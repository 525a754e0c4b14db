package support

import (
	"testing"

	"golang.org/x/sys/unix"
)

func TestSet(t *testing.T) {
	if err := unix.Prctl(unix.PR_SET_DUMPABLE, 1, 0, 0, 0); err != nil { // -count 2: the previous round has ended with 0
		t.Fatal(err)
	}
	for _, test := range []struct {
		variable string
		want     int
	}{{"1", 1}, {"", 0}} { // in this order: the program offers no way back
		t.Setenv(NoDumpVariable, test.variable)
		if err := NoDump(); err != nil {
			t.Fatal(err)
		}
		got, err := unix.PrctlRetInt(unix.PR_GET_DUMPABLE, 0, 0, 0, 0)
		if got != test.want || err != nil {
			t.Errorf("with %q the process is dumpable: %d, %v, want %d", test.variable, got, err, test.want)
		}
	}
}
