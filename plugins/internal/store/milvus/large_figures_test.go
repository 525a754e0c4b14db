package milvus

import (
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// figures holds the measurements of a process.
type figures struct {
	Lines  []line
	Memory int               // peak memory of the process in RAM, in bytes
	Best   [][]sdk.Candidate // ten of each query
}

// line is a cell of the table.
type line struct{ Name, Value string }

func seconds(name string, d time.Duration) line {
	return line{name, fmt.Sprintf("%.2f s", d.Seconds())}
}

func megabytes(name string, n int) line { return line{name, fmt.Sprintf("%d MB", n>>20)} }

func percentiles(name string, times []time.Duration) line {
	slices.Sort(times)
	at := func(share float64) float64 { return times[int(share*float64(len(times)))].Seconds() * 1000 }
	return line{name + ", p50 (p95)", fmt.Sprintf("%.1f (%.1f) ms", at(.5), at(.95))}
}

// printFigures prints a table in Markdown with a column for each store.
func printFigures(title string, names []string, columns ...[]line) {
	fmt.Printf("\n| %s | %s |\n|%s\n", title, strings.Join(names, " | "), strings.Repeat("---|", len(names)+1))
	var rows []string
	values := map[string]string{}
	for i, column := range columns {
		for _, l := range column {
			if !slices.Contains(rows, l.Name) {
				rows = append(rows, l.Name)
			}
			values[l.Name+names[i]] = l.Value
		}
	}
	for _, row := range rows {
		fmt.Printf("| %s |", row)
		for _, name := range names {
			fmt.Printf(" %s |", values[row+name])
		}
		fmt.Println()
	}
}

// peakMemory returns the most memory that a process has had in RAM, in bytes, including mapped files.
func peakMemory(t testing.TB, pid int) int {
	t.Helper()
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		t.Skip("this system does not say how much memory a process takes")
	}
	for text := range strings.Lines(string(status)) {
		if rest, ok := strings.CutPrefix(text, "VmHWM:"); ok {
			kb, err := strconv.Atoi(strings.Fields(rest)[0])
			must.Do(t, err)
			return kb << 10
		}
	}
	t.Fatal("the memory of a process is not in its status")
	return 0
}

// diskUsage returns the size of the files below a folder, in bytes.
func diskUsage(t testing.TB, folder string) (total int) {
	t.Helper()
	must.Do(t, filepath.WalkDir(folder, func(_ string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		info, err := d.Info()
		if err == nil {
			total += int(info.Size())
		}
		return err
	}))
	return total
}
