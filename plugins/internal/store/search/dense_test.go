package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"runtime"
	"slices"
	"testing"

	"github.com/racflow/racflow/plugins/internal/simd"

	"github.com/racflow/racflow/plugins/internal/store/segment"

	"github.com/racflow/racflow/sdk"
	"github.com/racflow/racflow/sdk/sdktest/must"
)

// denseTable returns a table with only vectors, one per row. The order of the ids differs from the order of the rows.
func denseTable(t testing.TB, r *rand.Rand, k *simd.Kernel, dimension int, rows [][]float32) *denseLeg {
	t.Helper()
	s, err := segment.EmptySnapshot(sdk.Schema{Dimension: dimension})
	must.Do(t, err)
	var parts []segment.Part
	var d segment.Draft
	for i, number := range r.Perm(len(rows)) {
		unit, _ := segment.Normalise(nil, rows[i])
		d.Add(&segment.Batch{Rows: []segment.Row{{Sequence: uint64(i), ID: fmt.Sprintf("%06d", number)}}, Vectors: vectors(unit)})
		if i+1 == len(rows) || r.IntN(len(rows)) < 2 {
			made, err := s.InMemory([]segment.Input{{Source: d.Source(nil)}})
			must.Do(t, err)
			parts = append(parts, segment.WholeSnapshot(made))
		}
	}
	return newDenseLeg(s.With(parts), k)
}

func vectors(x []float32) (v segment.Vectors) {
	v.Append(x)
	return v
}

func vectorAt(s *segment.Snapshot, row int32) []float32 {
	p, r := s.At(row)
	return p.Vector(r)
}

// without returns the same table without some rows.
func without(s *denseLeg, rows ...int) *denseLeg {
	removed := segment.NewRemover(s.of.Parts, nil)
	for _, r := range rows {
		removed.Remove(s.of.IDOf(int32(r)))
	}
	return newDenseLeg(s.of.With(removed.Parts), s.kernel)
}

// bruteForce scores and sorts all rows.
func bruteForce(s *denseLeg, query []float32, f *sdk.Filter, depth int) []scored {
	var all []scored
	for i := range int32(s.of.Rows) {
		p, r := s.of.At(i)
		if !p.Dead.Has(r) && f.Match(p.ID(r), "", nil) {
			all = append(all, scored{Score: s.of.Dot(s.kernel, query, i), Row: i})
		}
	}
	slices.SortFunc(all, (&top{Of: s.of}).Compare)
	return all[:min(depth, len(all))]
}

// fillings make vectors that codes can hardly tell apart.
var fillings = map[string]func(r *rand.Rand, n, dimension int) [][]float32{
	"independent": func(r *rand.Rand, n, dimension int) [][]float32 {
		return vectorsOf(n, dimension, func(int, int) float64 { return r.NormFloat64() })
	},
	"near duplicates": func(r *rand.Rand, n, dimension int) [][]float32 {
		base, noise := make([]float64, dimension), math.Exp2(-r.Float64()*26)
		for i := range base {
			base[i] = r.NormFloat64()
		}
		return vectorsOf(n, dimension, func(_, j int) float64 { return base[j] + noise*r.NormFloat64() })
	},
	"equal": func(r *rand.Rand, n, dimension int) [][]float32 {
		return vectorsOf(n, dimension, func(_, j int) float64 { return math.Sin(float64(j + 1)) })
	},
	"clusters with ties": func(r *rand.Rand, n, dimension int) [][]float32 {
		centres := vectorsOf(1+n/50, dimension, func(int, int) float64 { return r.NormFloat64() })
		var rows [][]float32
		for range n {
			x := slices.Clone(centres[r.IntN(len(centres))])
			if r.IntN(2) == 0 {
				x[r.IntN(dimension)] += float32(r.NormFloat64() * 1e-3)
			}
			rows = append(rows, x)
		}
		return rows
	},
	"few values": func(r *rand.Rand, n, dimension int) [][]float32 {
		return vectorsOf(n, dimension, func(int, int) float64 { return float64(r.IntN(3) - 1) })
	},
	"zero but for some": func(r *rand.Rand, n, dimension int) [][]float32 {
		return vectorsOf(n, dimension, func(i, j int) float64 {
			if i%40 != 0 || j != i/40%dimension {
				return 0
			}
			return float64(1 - i/40%2*2)
		})
	},
	"mostly zero": func(r *rand.Rand, n, dimension int) [][]float32 {
		return vectorsOf(n, dimension, func(int, int) float64 {
			if r.IntN(20) > 0 {
				return 0
			}
			return r.NormFloat64()
		})
	},
	"mostly zero in places": func(r *rand.Rand, n, dimension int) [][]float32 {
		return vectorsOf(n, dimension, func(i, _ int) float64 {
			if i/7%2 == 0 && r.IntN(20) > 0 {
				return 0
			}
			return float64(r.IntN(5) - 2)
		})
	},
	"one large value": func(r *rand.Rand, n, dimension int) [][]float32 {
		return vectorsOf(n, dimension, func(_, j int) float64 {
			if j == 0 {
				return 100
			}
			return r.NormFloat64() / 3
		})
	},
	"getting better": func(r *rand.Rand, n, dimension int) [][]float32 {
		return vectorsOf(n, dimension, func(i, j int) float64 { return math.Cos(float64(j)) + r.NormFloat64()*float64(n-i)/float64(n) })
	},
}

func vectorsOf(n, dimension int, value func(i, j int) float64) [][]float32 {
	rows := make([][]float32, n)
	for i := range rows {
		rows[i] = make([]float32, dimension)
		for j := range rows[i] {
			rows[i][j] = float32(value(i, j))
		}
	}
	return rows
}

// TestNearestIsExact compares with brute force, to the last bit and in order.
func TestNearestIsExact(t *testing.T) {
	must.NoRace(t)
	for name, fill := range fillings {
		for _, k := range simd.Kernels() {
			t.Run(fmt.Sprint(name, "/", k), func(t *testing.T) {
				t.Parallel()
				for seed := range uint64(24) {
					r := rand.New(rand.NewPCG(seed, 5))
					n, dimension := 1+r.IntN(1500), 1+r.IntN(150)
					if seed%8 == 7 {
						n = 2*pendingRows + 100 // more than the limit of pending rows
					}
					tab := denseTable(t, r, k, dimension, fill(r, n, dimension))
					var holes []int
					for range r.IntN(n) / 3 {
						holes = append(holes, r.IntN(n))
					}
					tab = without(tab, holes...)
					var queries [][]float32
					for range 1 + r.IntN(12) {
						query := fill(r, 1, dimension)[0]
						if r.IntN(2) == 0 {
							query = slices.Clone(vectorAt(tab.of, int32(r.IntN(tab.of.Rows))))
							query[r.IntN(dimension)] += float32(r.NormFloat64() / 10)
						}
						if unit, _ := segment.Normalise(nil, query); !segment.IsZero(unit) {
							queries = append(queries, unit)
						}
					}
					depth := 1 + r.IntN(100)
					if seed%6 == 5 {
						depth = n + 10
					}
					filters, among := make([]*sdk.Filter, len(queries)), make([]selection, len(queries))
					for i := range filters {
						if seed%2 == 1 { // from all rows to hardly any
							id := fmt.Sprintf("%06d", r.IntN(n>>r.IntN(10)+1))
							filters[i] = &sdk.Filter{Op: sdk.FilterLess, Field: sdk.FieldID, Values: []any{id}}
						}
						among[i] = Selected(tab.of, filters[i])
					}
					found, err := tab.Search(t.Context(), queries, among, depth)
					must.Do(t, err)
					for i, q := range queries {
						if want := bruteForce(tab, q, filters[i], depth); !slices.Equal(found[i], want) {
							t.Fatalf("seed %d, %d × %d, query %d, depth %d: got %v, want %v", seed, n, dimension, i, depth, found[i], want)
						}
					}
				}
			})
		}
	}
}

// TestManyQueries uses more and fewer queries than the cores divide among them.
func TestManyQueries(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(3))
	r := rand.New(rand.NewPCG(3, 4))
	tab := denseTable(t, r, simd.Best(), 48, fillings["clusters with ties"](r, 700, 48))
	for _, count := range []int{3*coreQueries - 1, 3 * coreQueries, 3*coreQueries + 1, 3*queryGroup + 5} {
		queries := make([][]float32, count)
		for i := range queries {
			queries[i], _ = segment.Normalise(nil, fillings["independent"](r, 1, 48)[0])
		}
		found, err := tab.Search(t.Context(), queries, make([]selection, count), 20)
		must.Do(t, err)
		for i, q := range queries {
			if want := bruteForce(tab, q, nil, 20); !slices.Equal(found[i], want) {
				t.Fatalf("query %d of %d: got %v, want %v", i, count, found[i], want)
			}
		}
	}
}

// TestBounds checks that the cosine of every row is within the probe's bounds.
func TestBounds(t *testing.T) {
	must.NoRace(t)
	for name, fill := range fillings {
		t.Run(name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(8, 9))
			for range 20 {
				dimension := 1 + r.IntN(900)
				rows := fill(r, 60, dimension)
				tab := denseTable(t, r, simd.Best(), dimension, rows)
				query, _ := segment.Normalise(nil, rows[0])
				if segment.IsZero(query) {
					continue
				}
				p := tab.newProbe(0, query, nil, 1)
				if p.codes == nil {
					t.Skip("this machine has no kernel for int8 codes")
				}
				for i := range rows {
					coarse, g := make([]int8, segment.CodeWidth(dimension)), segment.Quantisation{}
					g.Scale, g.Lost = tab.kernel.Quantise(coarse, vectorAt(tab.of, int32(i)))
					var dot, exact float64
					for j, c := range coarse {
						dot += float64(c) * float64(p.codes[j])
					}
					for j, v := range vectorAt(tab.of, int32(i)) {
						exact += float64(v) * float64(query[j])
					}
					off := math.Abs(exact - dot*float64(p.bound.Scale)*float64(g.Scale))
					// The second half of slack's arithmetic part belongs to the dot product.
					if most := p.bound.Slope*g.Lost + p.bound.Slack - float32(dimension)/(1<<24); off > float64(most) {
						t.Fatalf("%d dimensions: off by %g, not %g", dimension, off, most)
					}
				}
			}
		})
	}
}

// BenchmarkNearest measures the dense leg alone, over random vectors, which are the hardest to distinguish.
func BenchmarkNearest(b *testing.B) {
	const depth, benchDimension = 60, 384
	for _, n := range []int{100_000, 500_000} {
		if n > 100_000 && testing.Short() {
			continue // takes 1 GB
		}
		r := rand.New(rand.NewPCG(1, 2))
		x := make([]float32, benchDimension)
		vector := func() []float32 {
			for i := range x {
				x[i] = r.Float32() - 0.5
			}
			unit, _ := segment.Normalise(nil, x)
			return unit
		}
		var d segment.Draft
		for i := range n {
			d.Add(&segment.Batch{Rows: []segment.Row{{ID: fmt.Sprint(i)}}, Vectors: vectors(vector())})
		}
		s, err := segment.EmptySnapshot(sdk.Schema{Dimension: benchDimension})
		must.Do(b, err)
		made, err := s.InMemory([]segment.Input{{Source: d.Source(nil)}})
		must.Do(b, err)
		leg := newDenseLeg(s.With([]segment.Part{segment.WholeSnapshot(made)}), simd.Best())
		for _, count := range []int{1, 4, 64} {
			queries := make([][]float32, count)
			for i := range queries {
				queries[i] = vector()
			}
			b.Run(fmt.Sprintf("rows=%d/queries=%d", n, count), func(b *testing.B) {
				for b.Loop() {
					if _, err := leg.Search(b.Context(), queries, make([]selection, count), depth); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N*count), "µs/query")
			})
		}
	}
}
