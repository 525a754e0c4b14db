package doctor

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"
)

func all(int, int) bool { return true }

func TestPairs(t *testing.T) {
	for _, c := range []struct {
		name  string
		texts []string
		want  int
	}{
		{"none", nil, 0},
		{"empty ones are not alike", []string{"", ""}, 0},
		{"the same", []string{"my card is lost", "my card is lost"}, 1},
		{"shorter than a shingle", []string{"ok", "ok", "no"}, 1},
		{"a letter more", []string{"please tell me where my parcel is right now", "please tell me where my parcels is right now"}, 1},
		{"another meaning in other words", []string{"where is my parcel", "I have lost my card"}, 0},
		{"characters, not bytes", []string{"我的包裹什么时候到我的家里来呢请告诉我", "我的包裹什么时候到我的家里来呢请告诉我吧"}, 1},
	} {
		got, err := NearPairs(t.Context(), c.texts, all)
		if err != nil || len(got) != c.want {
			t.Errorf("%s: %v, %v; want %d", c.name, got, err, c.want)
		}
	}
	if got, _ := NearPairs(t.Context(), []string{"my card is lost", "my card is lost"}, func(int, int) bool { return false }); got != nil {
		t.Errorf("nobody wanted %v", got)
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := NearPairs(ctx, []string{"a"}, all); err == nil {
		t.Error("it goes on after its context has ended")
	}
}

// Near pairs are found among any other texts.
func TestFound(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	word := func() string { return fmt.Sprintf("%x", random.IntN(1<<20)) }
	var texts []string
	for range 500 {
		text := ""
		for range 20 {
			text += word() + " "
		}
		texts = append(texts, text, text+word())
	}
	got, err := NearPairs(t.Context(), texts, all)
	near := 0
	for i := 0; i < len(texts); i += 2 {
		if jaccard(shingles(texts[i]), shingles(texts[i+1])) >= nearFrom {
			near++
		}
	}
	if err != nil || len(got) < near*98/100 || near < 400 {
		t.Errorf("%d of %d pairs found, %v", len(got), near, err)
	}
	for _, p := range got {
		if p.A/2 != p.B/2 || p.A >= p.B || p.Index < nearFrom {
			t.Errorf("%+v is no pair", p)
		}
	}
}
