package redact

import (
	"slices"
	"strings"
	"sync"
	"testing"
)

func TestMessageAndResult(t *testing.T) {
	const pem = "-----BEGIN KEY-----\nMIIEvQIBADANBgkq\n  hkiG9w0BAQEFAASC \n-----END KEY-----\n"
	for _, test := range []struct {
		name                  string
		secrets               []string
		text, message, result string
	}{
		{"none", nil, "sk-1", "sk-1", "sk-1"},
		{"empty ones", []string{"", " ", "\n"}, "a b", "a b", "a b"},
		{"several", []string{"sk-one", "sk-two"}, "sk-one sk-two sk-one", "(secret) (secret) (secret)", "(secret) (secret) (secret)"},
		{"the longer of two first", []string{"sk-one", "sk-one-two"}, "sk-one-two, sk-one", "(secret), (secret)", "(secret), (secret)"},
		{"one in another", []string{"Bearer sk-one", "sk-one"}, "Bearer sk-one; sk-one", "(secret); (secret)", "(secret); (secret)"},
		{"a short one", []string{"order"}, "order: order_status, reorder, order.", "(secret): order_status, reorder, (secret).", "order: order_status, reorder, order."},
		{"letters", []string{"k", "x"}, `x-api-key: k, max_tokens {"key":"x"}?k=k&x`, `x-api-key: (secret), max_tokens {"key":"(secret)"}?(secret)=(secret)&(secret)`, `x-api-key: k, max_tokens {"key":"x"}?k=k&x`},
		{"no letter", []string{"(", "ü"}, "f(ü) für", "f(secret)(secret)) für", "f(ü) für"},
		{"a short one, quoted", []string{`a"b`}, `{"key": "a\"b"}`, `{"key": "(secret)"}`, `{"key": "a\"b"}`},
		{"a short and a long one", []string{"order", "sk-order"}, "sk-order of an order", "(secret) of an (secret)", "(secret) of an order"},
		{"a line of several", []string{pem}, "it has hkiG9w0BAQEFAASC in it", "it has (secret) in it", "it has (secret) in it"},
		{"the placeholder's own word", []string{"secret"}, "a secret", "a (secret)", "a (secret)"},
		{"quoted by Go", []string{"tab\tand\x01more"}, `"tab\tand\x01more"`, `"(secret)"`, `"(secret)"`},
		{"quoted at its end", []string{`sk-one"`}, `{"key": "sk-one\""}`, `{"key": "(secret)"}`, `{"key": "(secret)"}`},
		{"half of one", []string{"sk-one-two"}, "sk-one-", "sk-one-", "sk-one-"},
	} {
		t.Run(test.name, func(t *testing.T) {
			var s Secrets
			s.Add(test.secrets...)
			s.Add(test.secrets...) // again, by another stage
			if got := s.Message(test.text); got != test.message {
				t.Errorf("the message is %q, want %q", got, test.message)
			}
			if got := s.Result(test.text); got != test.result {
				t.Errorf("the result is %q, want %q", got, test.result)
			}
			if got, want := s.InResults(), slices.ContainsFunc(test.secrets, func(v string) bool { return len(strings.TrimSpace(v)) > 5 }); got != want {
				t.Errorf("it may be in results: %v, want %v", got, want)
			}
		})
	}
}

// TestAddMeanwhile adds secrets while texts are searched, like starting stages.
func TestAddMeanwhile(t *testing.T) {
	var s Secrets
	s.Add("sk-first-one")
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			s.Add(strings.Repeat(string(rune('a'+i)), 8+i))
			if got := s.Message("it is sk-first-one"); got != "it is (secret)" {
				t.Errorf("got %q", got)
			}
		})
	}
	all.Wait()
	if s.Longest() != 15 || s.Result("bbbbbbbbb.hhhhhhhhhhhhhhh") != "(secret).(secret)" {
		t.Errorf("the longest has %d bytes: %s", s.Longest(), s.Result("bbbbbbbbb.hhhhhhhhhhhhhhh"))
	}
}
