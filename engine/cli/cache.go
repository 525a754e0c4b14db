package cli

import (
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/racflow/racflow/engine/internal/knowledge/cache"
	"github.com/racflow/racflow/engine/internal/terminal"
	"github.com/racflow/racflow/engine/internal/workspace"
)

func newCache() *cobra.Command {
	c := newCacheStats()
	c.Use, c.Short = "cache", "Show, trim and clear the cache of answers and vectors"
	c.Long = `Show, trim and clear what need not be made twice.

Answers of services: each is kept under what was asked (endpoint, model, messages,
parameters, number of the sample), as soon as it arrives. A run that asks for the
same again gets it from here. They were paid for, so all are kept.

Vectors of passages: each is kept under the embedder and the text that was
embedded. A file that was renamed, another exclude, another chunk size or a second
knowledge over the same files embed only what no build has embedded. Of embedders
that learn from a knowledge, such as hashing, none are kept, since each knowledge
has others; those of an embeddings endpoint are among the answers. They have 2 GB at
most, and those used least recently are removed when a build begins or ends.

Other limits are set in a pipeline file:

  cache {
    vector_bytes = 2000000000 # 0 keeps none
    answer_bytes = 500000000
    age          = "2160h"
  }

Without a verb it shows what there is, as stats does.`
	c.AddCommand(newCacheStats(), newCacheTrim(), newCacheClear())
	return c
}

func newCacheStats() *cobra.Command {
	var state string
	var asJSON bool
	c := &cobra.Command{
		Use:   "stats",
		Short: "Show how much each stage keeps",
		Example: `  racflow cache stats
  racflow cache stats --json
  racflow cache stats --state elsewhere`,
		Args: cobra.NoArgs,
		RunE: func(c *cobra.Command, _ []string) error {
			s, err := cache.ReadStats(filepath.Join(state, workspace.CacheFolder))
			if err != nil {
				return err
			}
			vectors, err := cache.ReadVectorStats(filepath.Join(state, workspace.VectorsFolder))
			if err != nil {
				return err
			}
			for _, err := range slices.Concat(s.Damaged, vectors.Damaged) {
				fmt.Fprintln(c.ErrOrStderr(), err)
			}
			if asJSON {
				return writeJSON(c.OutOrStdout(), struct {
					cache.Stats
					Vectors cache.Stats `json:"vectors"`
				}{s, vectors})
			}
			tw := tabwriter.NewWriter(c.OutOrStdout(), 0, 0, 2, ' ', 0)
			writeStats(tw, "STAGE\tANSWERS", "all, in "+terminal.Plural(s.Files, "file"), s)
			fmt.Fprintln(tw)
			writeStats(tw, "EMBEDDER\tVECTORS", "all vectors, in "+terminal.Plural(vectors.Files, "file"), vectors)
			return tw.Flush()
		},
	}
	c.Flags().StringVar(&state, "state", stateDir, "`DIR` that keeps them between runs")
	c.Flags().BoolVar(&asJSON, "json", false, "print a JSON object")
	return c
}

// writeStats writes a table of one kind of entries.
func writeStats(tw *tabwriter.Writer, head, all string, s cache.Stats) {
	fmt.Fprintln(tw, head+"\tSIZE\tOLDEST\tNEWEST")
	at := func(t time.Time) string { return t.Local().Format(time.DateTime) }
	for _, a := range s.About {
		fmt.Fprintf(tw, "%s\t%d\t%s\t%s\t%s\n", a.About, a.Entries, size(a.Bytes), at(a.Oldest), at(a.Newest))
	}
	fmt.Fprintf(tw, "%s\t%d\t%s\t\t\n", all, s.Entries, size(s.Bytes))
}

// kindsOfCache are the kinds of entries that trim and clear remove.
var kindsOfCache = []string{"answers", "vectors"}

// cacheArgs checks the names of kinds.
func cacheArgs(_ *cobra.Command, args []string) error {
	for _, arg := range args {
		if !slices.Contains(kindsOfCache, arg) {
			return fmt.Errorf("there is no %q in the cache: it holds %s", arg, strings.Join(kindsOfCache, " and "))
		}
	}
	return nil
}

// eachKind removes entries of each named kind, or of both kinds, and reports what it has removed.
func eachKind(c *cobra.Command, state string, kinds []string, remove map[string]func(folder string) (cache.Cleared, error)) error {
	if err := workspace.CheckState(state); err != nil {
		return err
	}
	busy := 0
	for _, kind := range kindsOfCache {
		if len(kinds) > 0 && !slices.Contains(kinds, kind) {
			continue
		}
		folder := workspace.CacheFolder
		if kind == "vectors" {
			folder = workspace.VectorsFolder
		}
		done, err := remove[kind](filepath.Join(state, folder))
		if err != nil {
			return err
		}
		fmt.Fprintf(c.OutOrStdout(), "removed %s, %s\n", terminal.Plural(done.Records, strings.TrimSuffix(kind, "s")), size(done.Bytes))
		busy += done.Busy
	}
	if busy > 0 {
		fmt.Fprintf(c.ErrOrStderr(), "left alone, because runs are writing there: %s\n", terminal.Plural(busy, "file"))
		return &exitError{code: exitItemsFailed}
	}
	return nil
}

const cacheTrimLong = `Remove what is too old or too much: of the answers, the vectors, or of each. Of
answers the oldest are removed, of vectors those that were used least recently. What
a running process writes stays, and is reported.

Exit code 0: the limits hold; 1: broke off; 3: some stayed.`

func newCacheTrim() *cobra.Command {
	var state, most string
	var age time.Duration
	c := &cobra.Command{
		Use:   "trim [answers] [vectors]",
		Short: "Remove what is too old or too much",
		Long:  cacheTrimLong,
		Example: `  racflow cache trim --age 720h
  racflow cache trim --bytes 1GB vectors
  racflow cache trim --bytes 1GB --age 720h answers`,
		Args: cacheArgs,
		RunE: func(c *cobra.Command, kinds []string) error {
			if most == "" && age == 0 {
				return fmt.Errorf("nothing says what is too much: give --bytes, --age or both; racflow cache clear removes all")
			}
			l := cache.Limits{Age: age}
			if age < 0 {
				return fmt.Errorf("--age %s: an age is at least 0", age)
			}
			if most != "" {
				var err error
				if l.Bytes, err = parseSize(most); err != nil {
					return fmt.Errorf("--bytes %s: %w", most, err)
				}
			}
			trim := func(trim func(string, cache.Limits) (cache.Cleared, error)) func(string) (cache.Cleared, error) {
				return func(folder string) (cache.Cleared, error) { return trim(folder, l) }
			}
			return eachKind(c, state, kinds, map[string]func(string) (cache.Cleared, error){"answers": trim(cache.Trim), "vectors": trim(cache.TrimVectors)})
		},
	}
	c.Flags().StringVar(&state, "state", stateDir, "`DIR` that keeps them between runs")
	c.Flags().StringVar(&most, "bytes", "", "how much of each may stay: a `SIZE` such as 1GB, 500MB or 64KiB")
	c.Flags().DurationVar(&age, "age", 0, "remove what was not used (vectors) or came (answers) longer ago than this, such as 720h")
	return c
}

const cacheClearLong = `Remove the answers, the vectors, or both: all, or those that are older than
--age. What a running process writes stays, and is reported.

Exit code 0: all that were to go are gone; 1: broke off; 3: some stayed.`

func newCacheClear() *cobra.Command {
	var state string
	var older time.Duration
	c := &cobra.Command{
		Use:   "clear [answers] [vectors]",
		Short: "Remove what is kept",
		Long:  cacheClearLong,
		Example: `  racflow cache clear
  racflow cache clear vectors
  racflow cache clear answers --age 720h`,
		Args: cacheArgs,
		RunE: func(c *cobra.Command, kinds []string) error {
			if older < 0 {
				return fmt.Errorf("--age %s: an age is at least 0", older)
			}
			before, vectors := time.Now().Add(-older), cache.Limits{Age: older}
			if older == 0 {
				before, vectors = time.Unix(0, math.MaxInt64), cache.Limits{Bytes: 1} // whatever the clock said
			}
			return eachKind(c, state, kinds, map[string]func(string) (cache.Cleared, error){
				"answers": func(folder string) (cache.Cleared, error) { return cache.Clear(folder, before) },
				"vectors": func(folder string) (cache.Cleared, error) { return cache.TrimVectors(folder, vectors) },
			})
		},
	}
	c.Flags().StringVar(&state, "state", stateDir, "`DIR` that keeps them between runs")
	c.Flags().DurationVar(&older, "age", 0, "only what is older than this, such as 720h")
	return c
}

// parseSize reads a number of bytes with or without a unit.
func parseSize(text string) (int64, error) {
	number := strings.TrimRight(text, "kKMGTiB ")
	unit := strings.TrimSpace(strings.TrimPrefix(text, number))
	factor, known := map[string]float64{
		"": 1, "B": 1, "kB": 1e3, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12,
		"KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30, "TiB": 1 << 40,
	}[unit]
	n, err := strconv.ParseFloat(number, 64)
	if bytes := n * factor; err == nil && known && bytes >= 1 && bytes < math.MaxInt64 {
		return int64(bytes), nil
	}
	return 0, fmt.Errorf("a size is a number above 0, with B, kB, MB, GB, TB, KiB, MiB, GiB or TiB behind it")
}

// size formats bytes in a suitable unit.
func size(n int64) string {
	if n < 1e6 {
		return fmt.Sprintf("%.1f kB", float64(n)/1e3)
	}
	return fmt.Sprintf("%.1f MB", float64(n)/1e6)
}
