package chat

import (
	"cmp"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/racflow/racflow/engine/result"
)

// annotation says where a part of an answer is from.
type annotation struct {
	Type     string   `json:"type"` // "url_citation"
	Citation citation `json:"url_citation"`
}

type citation struct {
	Start int    `json:"start_index"` // in characters of the answer
	End   int    `json:"end_index"`
	Title string `json:"title"`
	URL   string `json:"url"` // of a file, relative as the knowledge names it, with lines as #L3-L9; else the entry's id
}

var mark = regexp.MustCompile(`\[(\d+)\]`)

// annotations are the places where a text cites something.
func annotations(text string, cited []result.Citation) []annotation {
	var all []annotation
	for _, at := range mark.FindAllStringSubmatchIndex(text, -1) {
		number, err := strconv.Atoi(text[at[2]:at[3]])
		i := slices.IndexFunc(cited, func(c result.Citation) bool { return c.Number == number })
		if err != nil || i < 0 {
			continue
		}
		start := utf8.RuneCountInString(text[:at[0]])
		all = append(all, annotation{"url_citation", citation{
			Start: start, End: start + at[1] - at[0], // digits and brackets are a byte each
			Title: title(cited[i]), URL: address(cited[i]),
		}})
	}
	return all
}

func title(c result.Citation) string { return cmp.Or(text(c.Title), text(c.Path), c.ID) }

func address(c result.Citation) string {
	path := text(c.Path)
	if path == "" {
		return (&url.URL{Path: c.ID}).String()
	}
	u := url.URL{Path: path}
	if first := text(c.FirstLine); first != "" {
		if u.Fragment = "L" + first; c.LastLine != nil {
			u.Fragment += "-L" + text(c.LastLine)
		}
	} else if page := text(c.FirstPage); page != "" {
		u.Fragment = "page=" + page
	}
	return u.String()
}

func text(value any) string {
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}
