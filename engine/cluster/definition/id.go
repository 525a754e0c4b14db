package definition

import (
	"crypto/rand"
	"regexp"
)

// letters of IDs have no vowels, so that no ID is a word, and nothing that is read as something
// else.
const letters = "23456789bcdfghjkmnpqrstvwxz"

// idLength makes 27^8 = 2.8e11 IDs: two of a million runs at the same servers are alike with a chance of
// less than 1:100,000 for each new one.
const idLength = 8

var idForm = regexp.MustCompile(`^[bcdfghjkmnpqrstvwxz][2-9b-df-hj-kmnp-tv-xz]{5,15}$`)

// IsID reports whether a text could be the ID of a run at servers. The names of local runs
// (run-000001) cannot.
func IsID(text string) bool { return idForm.MatchString(text) }

// NewID returns a random ID.
func NewID() string {
	id := make([]byte, 0, idLength)
	for random := [1]byte{}; len(id) < idLength; {
		_, _ = rand.Read(random[:]) // it never fails
		at := int(random[0])
		switch {
		case at >= 256/len(letters)*len(letters): // else some letters would come more often
		case len(id) == 0 && at%len(letters) < 8: // a digit
		default:
			id = append(id, letters[at%len(letters)])
		}
	}
	return string(id)
}
