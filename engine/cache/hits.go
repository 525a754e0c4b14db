package cache

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/racflow/racflow/sdk/support"
)

// hitsFile holds, as a decimal number, how often values were used again.
const hitsFile = "hits"

// CountHits notes that values of a folder were used again n times, for people: it ignores
// errors, and where processes end at the same moment it may miss some.
func CountHits(dir string, n int64) {
	if n <= 0 {
		return
	}
	f, err := support.OpenLock(filepath.Join(dir, hitsFile), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return
	}
	_, _ = fmt.Fprintf(f, "%020d\n", readHits(dir)+n) // in place: the length is the same each time
	_ = f.Close()
}

// readHits reads what CountHits has counted.
func readHits(dir string) int64 {
	text, _ := os.ReadFile(filepath.Join(dir, hitsFile))
	n, _ := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64) // 0 of what cannot be read
	return max(n, 0)
}

// forgetHits ends the count of a folder that holds nothing any more.
func forgetHits(dir string) { _ = os.Remove(filepath.Join(dir, hitsFile)) }
