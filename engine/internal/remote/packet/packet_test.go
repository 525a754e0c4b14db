package packet

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"

	"github.com/racflow/racflow/engine/internal/knowledge/source"
	"github.com/racflow/racflow/engine/internal/run"
)

// compressed is a frame of zstd. Where it is not whole, it does not say how long its content is.
func compressed(t testing.TB, content []byte, whole bool) []byte {
	t.Helper()
	var out bytes.Buffer
	z, err := zstd.NewWriter(&out, zstd.WithEncoderConcurrency(1))
	if err != nil {
		t.Fatal(err)
	}
	if whole {
		return z.EncodeAll(content, nil)
	}
	for part := range slices.Chunk(content, 1000) {
		if _, err := z.Write(part); err != nil {
			t.Fatal(err)
		}
		if err := z.Flush(); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

func TestFrames(t *testing.T) {
	good, err := EncodeOrder(run.Order{Rows: []source.Row{{Line: 2, Text: "a"}}})
	if err != nil {
		t.Fatal(err)
	}
	head := []byte{Version, byte(orders)}
	of := func(content string) []byte {
		return append(slices.Clone(head), compressed(t, []byte(content), true)...)
	}
	many := `{"rows":[` + strings.TrimSuffix(strings.Repeat("{},", maxItems+1), ",") + `]}`
	tests := map[string]struct {
		data []byte
		want string
	}{
		"nothing":             {nil, "a packet is cut off"},
		"one byte":            {[]byte{Version}, "a packet is cut off"},
		"another version":     {append([]byte{Version + 1}, good[1:]...), "a packet is of version 2, and this racflow reads versions up to 1: let the same racflow run on all machines"},
		"version 0":           {append([]byte{0}, good[1:]...), "a packet is of version 0"},
		"another kind":        {append([]byte{Version, byte(answers)}, good[2:]...), "a packet has answers where an order is expected"},
		"no kind":             {append([]byte{Version, 'x'}, good[2:]...), "a packet has something else ('x') where an order is expected"},
		"no frame":            {head, "a packet is damaged: EOF"},
		"cut off":             {good[:len(good)-5], "a packet is damaged: "},
		"no JSON":             {of("rows"), "a packet is damaged: invalid character 'r' looking for beginning of value"},
		"something follows":   {of(`{"rows":[]}{}`), "a packet is damaged: something follows its content"},
		"an unknown part":     {of(`{"rows":[],"colour":1}`), `a packet is damaged: json: unknown field "colour"`},
		"an unknown column":   {of(`{"rows":[{"colour":1}]}`), `a packet is damaged: item 1: json: unknown field "colour"`},
		"an unknown pass":     {of(`{"rows":[],"pass":3}`), "a packet is damaged: there is no pass 3"},
		"an unknown text":     {of(`{"rows":[{"text":1}]}`), "a packet is damaged: there is no text 1"},
		"a text below":        {of(`{"rows":[{"text":-1}]}`), "a packet is damaged: there is no text -1"},
		"unknown metadata":    {of(`{"rows":[{"meta":1}]}`), "a packet is damaged: there is no metadata 1"},
		"metadata cut off":    {of(`{"metas":[[0,0]],"rows":[{"meta":1}]}`), "a packet is damaged: metadata of 2 numbers, which is no multiple of 3"},
		"a type":              {of(`{"metas":[[0,9,0]],"rows":[{"meta":1}]}`), "a packet is damaged: there is no type 9"},
		"a gold passage":      {of(`{"rows":[{"gold":[0,5,0]}]}`), "a packet is damaged: a gold passage is cut off"},
		"grades":              {of(`{"rows":[{"gold":[0,-1]}]}`), "a packet is damaged: 0 bytes are not 1 numbers"},
		"a text that is none": {of(`{"texts":["\u0000!"],"rows":[]}`), "a packet is damaged: text 1: illegal base64 data at input byte 0"},
		"too many items":      {of(many), "a packet is damaged: 131073 items are more than 131072"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			if _, err := DecodeOrder(test.data); err == nil || !strings.HasPrefix(err.Error(), test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
	if _, err := DecodeOrder(good); err != nil {
		t.Error(err)
	}
}

// TestDamagedAnswers has parts that do not fit together.
func TestDamagedAnswers(t *testing.T) {
	tests := map[string]struct{ data, want string }{
		"fewer results than rows": {`{"rows":[{"at":0,"line":0}],"results":[]}`, "0 results are not those of 1 rows"},
		"left":                    {`{"rows":[{}],"left":{"1":{}}}`, "item 1 of 1 is left for no reason"},
		"left for nothing":        {`{"rows":[{}],"left":{"0":null}}`, "item 0 of 1 is left for no reason"},
		"bill":                    {`{"rows":[{}],"bills":{"-1":{"calls":1,"amounts":"AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}}}`, "item -1 of 1 has no bill"},
		"a bill's amounts":        {`{"rows":[{}],"bills":{"0":{"calls":1,"amounts":"AAAA"}}}`, "3 bytes are not 3 numbers"},
		"no failure":              {`{"rows":[],"halted":[null]}`, "a failure is missing"},
		"a failure of nothing":    {`{"rows":[],"halted":[{"stage":0}]}`, "a failure has no error"},
		"entries":                 {`{"rows":[],"entries":{"id":[1],"text":[],"label":[0],"context":[0],"meta":[0]}}`, "columns of entries have 1 and 0 values"},
		"an entry":                {`{"rows":[{}],"results":[{"candidates":{"entries":[0],"scores":"AAAAAAAAAAAAAAAA"}}]}`, "there is no entry 0"},
		"scores":                  {`{"rows":[{}],"results":[{"candidates":{"entries":[0]}}]}`, "1 candidates have 0 bytes of scores"},
		"a list":                  {`{"rows":[{}],"results":[{"candidates":{"as":1}}]}`, "there is no list 1"},
		"citations":               {`{"rows":[{}],"results":[{"citations":{"numbers":[1]}}]}`, "0 passages have 1 numbers"},
		"votes":                   {`{"rows":[{}],"results":[{"votes":{"voter":[0],"answer":[0],"weight":"AAAAAAAAAAA="}}]}`, "columns of 1 votes have other lengths"},
		"reasons of votes":        {`{"rows":[{}],"results":[{"votes":{"voter":[0],"answer":[0],"weight":"AAAAAAAAAAA=","accepted":"AQ==","reason":[0,0]}}]}`, "columns of 1 votes have other lengths"},
		"rules":                   {`{"rows":[{}],"results":[{"rules":[0,0,0]}]}`, "rules of 3 numbers, which is no multiple of 6"},
		"retries":                 {`{"rows":[{}],"results":[{"retries":[0]}]}`, "retries of 1 numbers, which is no multiple of 3"},
		"what was drawn":          {`{"rows":[{}],"results":[{"drawn":[0]}]}`, "pairs of 1 numbers, which is no multiple of 2"},
		"requests":                {`{"rows":[{}],"results":[{"requests":{"voters":[0],"keys":"AAAA"}}]}`, "1 requests have 3 bytes of keys"},
		"usage":                   {`{"rows":[{}],"results":[{"usage":[1]}]}`, "usage is three numbers, and not 1"},
		"usages":                  {`{"rows":[{}],"results":[{"usages":[0,1,2,3,0]}]}`, "usage is three numbers, and not 0"},
		"a voter's usage":         {`{"rows":[{}],"results":[{"usages":[18446744073709551615,1,2,3]}]}`, "there is no text 268435456"},
		"costs":                   {`{"rows":[{}],"results":[{"priced":[0]}]}`, "0 bytes are not 1 numbers"},
		"a decision":              {`{"texts":["now"],"rows":[{}],"results":[{"decided":{"at":1}}]}`, `parsing time "now"`},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			data := append([]byte{Version, byte(answers)}, compressed(t, []byte(test.data), true)...)
			if _, _, err := DecodeAnswers(data); err == nil || !strings.HasPrefix(err.Error(), "a packet is damaged: "+test.want) {
				t.Errorf("error %v, want %s", err, test.want)
			}
		})
	}
}

// TestBombs unpacks what is larger than a packet may be: as one frame that says so, as one that
// does not, and as many small ones.
func TestBombs(t *testing.T) {
	const most = 1 << 16
	content := []byte(`{"rows":[],"texts":["` + strings.Repeat("x", most) + `"]}`)
	half := compressed(t, content[:most/2], true)
	for name, frames := range map[string][]byte{
		"one frame": compressed(t, content, true), "a stream": compressed(t, content, false),
		"many frames": bytes.Repeat(half, 100),
	} {
		data := append([]byte{Version, byte(orders)}, frames...)
		err := openTo(orders, data, new(order[json.RawMessage]), most)
		if err == nil || !strings.Contains(err.Error(), "a packet has more than 0 MB: no racflow writes one") {
			t.Errorf("%s of %d bytes: %v", name, len(data), err)
		}
	}
	if err := openTo(orders, append([]byte{Version, byte(orders)}, compressed(t, content, true)...), new(order[json.RawMessage]), 2*most); err != nil {
		t.Error(err)
	}
	if _, err := sealTo(orders, order[row]{shared: shared{Texts: []string{strings.Repeat("x", most)}}}, most); err == nil || !strings.Contains(err.Error(), "set a smaller batch in the pipeline block") {
		t.Errorf("what is too large was written: %v", err)
	}
}
