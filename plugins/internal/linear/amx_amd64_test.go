package linear

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/cpu"

	"github.com/racflow/racflow/plugins/internal/simd"
)

// plainTiles computes in Go what the tiles of AMX compute, from the same memory.
func plainTiles(bfloat bool) func(*tileConfig, *product) {
	return func(config *tileConfig, p *product) {
		for i := range roundUp(p.rows, rowBlock) {
			row := p.a[i*p.lda:][:16*p.steps]
			for j := range PanelCols {
				var sum int32
				var floats float32
				for at := 0; at < len(row); at += 4 {
					x, w := row[at:][:4], p.b[at/4*lineBytes+4*j:][:4]
					if bfloat {
						floats += bfloat16(x)*bfloat16(w) + bfloat16(x[2:])*bfloat16(w[2:])
						continue
					}
					for b := range x {
						sum += int32(x[b]) * int32(int8(w[b]))
					}
				}
				if bfloat {
					sum = int32(math.Float32bits(floats))
				}
				p.sums[i*PanelCols+j] = sum
			}
		}
		if binary.Size(*config) != 64 || config.rowBytes[7] != 64 || config.rows[7] != 16 {
			panic("the shape of the tiles")
		}
	}
}

// TestTileUnits is about all of the units for AMX but its instructions.
func TestTileUnits(t *testing.T) {
	if !cpu.X86.HasAVX512F || !cpu.X86.HasAVX512BW {
		t.Skip("this processor has no AVX-512")
	}
	k := simd.Best()
	for p, plain := range map[Precision]*unit{Int8: portableInt8, BFloat16: portableBFloat16} {
		right := tileUnit(p, plainTiles(p == BFloat16))
		if us := proven(k, []*unit{right, plain}); us[0] != right || us[0].refused != "" {
			t.Errorf("%s: a unit that is right is refused", p)
		}
		wrong := tileUnit(p, func(c *tileConfig, q *product) {
			plainTiles(p == BFloat16)(c, q)
			q.sums[(q.rows-1)*PanelCols] ^= 1 << 23
		})
		other := *k
		chosen.Store(choice{&other, p}, proven(k, []*unit{wrong, plain}))
		defer chosen.Delete(choice{&other, p})
		if name := Unit(&other, p); !strings.HasPrefix(name, "portable (amx is not used") {
			t.Errorf("%s: a unit that is wrong is used: %s", p, name)
		}
		chosen.Store(choice{&other, p}, []*unit{right, plain})
		r := rand.New(rand.NewPCG(3, 4))
		for _, s := range shapes(r, 10) {
			x, w, bias := randomView(r, s[0], s[1]), randomView(r, s[2], s[1]), randoms(r, s[2])
			want, got := result(s[0], s[2]), result(s[0], s[2])
			seed := r.Uint64()
			multiply(simd.Portable(), p, New(simd.Portable(), p, w, bias), rand.New(rand.NewPCG(seed, 1)))(want, x)
			multiply(&other, p, New(&other, p, w, bias), rand.New(rand.NewPCG(seed, 1)))(got, x)
			if p == Int8 && !slices.Equal(got.Data, want.Data) {
				t.Errorf("%s %v: differs from plain Go", p, s)
			}
			for i, v := range want.Data {
				if math.Abs(float64(got.Data[i]-v)) > 1e-3 {
					t.Fatalf("%s %v: float %d: got %v, plain Go %v", p, s, i, got.Data[i], v)
				}
			}
		}
	}
}

func TestUnit(t *testing.T) {
	if got := Unit(simd.Portable(), Int8) + " " + Unit(simd.Portable(), BFloat16) + " " + Unit(simd.Portable(), Float32); got != "portable portable portable" {
		t.Error(got)
	}
}
