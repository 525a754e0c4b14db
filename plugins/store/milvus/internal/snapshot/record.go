package snapshot

// Record is what a commit leaves behind: the one row that is the commit.
type Record struct {
	Commit int64 `json:"commit"` // number of its turn
	// Origin is a random name that the first commit gives. A collection that was dropped
	// and made again has another one, and the same numbers may mean other rows.
	Origin string `json:"origin"`
	Next   int64  `json:"next"`  // sequence number; no row counts from here on
	Floor  int64  `json:"floor"` // rows with lower sequence numbers are dead
	// Gaps are the sequence numbers below Next of turns that did not commit.
	Gaps    []Gap `json:"gaps,omitempty"`
	Entries int   `json:"entries"`
	Words   int64 `json:"words"` // of all entries together
	// The average lengths that the words of the rows are weighed with.
	Lowest  float64 `json:"lowest"`
	Highest float64 `json:"highest"`

	Note       Blob   `json:"note"`
	Statistics []Blob `json:"statistics"` // later ones replace what earlier ones say
	Dead       []Blob `json:"dead"`
	Time       int64  `json:"time"` // until when the record may have been sent, in seconds since 1970, by the writer's clock
}

// Gap are the sequence numbers from From on and below To.
type Gap struct{ From, To int64 }

// Same reports that two records are of the same commit.
func (r *Record) Same(other *Record) bool {
	return r.Commit == other.Commit && r.Origin == other.Origin
}

// Average is the average length of a text in words; 1 where there are none.
func (r *Record) Average() float64 {
	if r.Entries == 0 || r.Words == 0 {
		return 1
	}
	return float64(r.Words) / float64(r.Entries)
}

// Keys are the keys of the system rows that the commit consists of.
func (r *Record) Keys() map[string]bool {
	used := map[string]bool{TurnKey(r.Commit, "record"): true}
	for kind, blobs := range map[string][]Blob{KindNote: {r.Note}, KindStatistics: r.Statistics, KindDead: r.Dead} {
		for _, b := range blobs {
			for _, key := range b.Keys(kind) {
				used[key] = true
			}
		}
	}
	return used
}
