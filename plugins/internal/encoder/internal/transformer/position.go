package transformer

import "math"

// readRelative reads MPNet's biases of relative positions, of which it has one for each
// head and bucket, as one for each head and distance.
func (m *Model) readRelative(r *Reader, n names) {
	biases := r.read(r.prefix+n.relative+".weight", m.Buckets, m.Heads)
	if r.err != nil {
		return
	}
	tokens := m.MaxTokens()
	// Scores are scaled after the bias is added.
	scale := math.Sqrt(float64(m.HeadSize()))
	for head := range m.Heads {
		row := make([]float32, 2*tokens-1)
		for i := range row {
			row[i] = float32(scale * float64(biases[bucket(i-(tokens-1), m.Buckets)*m.Heads+head]))
		}
		m.relative = append(m.relative, row)
	}
}

// relativeBias returns what is added to the scores of a query at a position for the keys from
// first on.
func (m *Model) relativeBias(head, position, first int) []float32 {
	return m.relative[head][first-position+m.MaxTokens()-1:]
}

// bucket is the bucket of a key that is distance after the query: half of them are for keys
// before it, half for those after it, and of each half the first half for one distance each,
// the others for ranges that grow up to a distance of 128 (Raffel et al. 2019,
// arXiv:1910.10683). The arithmetic is the original's, in float32.
func bucket(distance, buckets int) int {
	buckets /= 2
	first := 0
	if distance > 0 {
		first = buckets
	} else {
		distance = -distance
	}
	exact := buckets / 2
	if distance < exact {
		return first + distance
	}
	log := float32(math.Log(float64(float32(distance) / float32(exact))))
	large := log / float32(math.Log(128/float64(exact))) * float32(buckets-exact)
	return first + min(exact+int(large), buckets-1)
}

// rotations tell positions by rotating pairs of columns of queries and keys (Su et al.
// 2021, arXiv:2104.09864).
type rotations struct {
	global, local []float32 // a row for each position: cosines, then sines
}

func newRotations(c Config) *rotations {
	table := func(theta float64) []float32 {
		half := c.HeadSize() / 2
		values := make([]float32, 0, c.Positions*2*half)
		for position := range c.Positions {
			cosines, sines := make([]float32, half), make([]float32, half)
			for i := range half {
				frequency := 1 / float32(math.Pow(theta, float64(float32(2*i)/float32(2*half))))
				angle := float64(float32(position) * frequency)
				cosines[i], sines[i] = float32(math.Cos(angle)), float32(math.Sin(angle))
			}
			values = append(append(values, cosines...), sines...)
		}
		return values
	}
	return &rotations{global: table(c.GlobalTheta), local: table(c.LocalTheta)}
}

// rotate rotates a head of the token at a position: column i with column i + half.
func rotate(head, table []float32, position int) {
	half := len(head) / 2
	row := table[position*2*half:][:2*half]
	cosines, sines := row[:half], row[half:]
	low, high := head[:half], head[half:][:half]
	for i, a := range low {
		b := high[i]
		low[i] = a*cosines[i] - b*sines[i]
		high[i] = b*cosines[i] + a*sines[i]
	}
}
