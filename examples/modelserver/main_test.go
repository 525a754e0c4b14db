package main

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk/sdktest/modelserver"
)

func TestServe(t *testing.T) {
	ctx, stop := context.WithCancel(t.Context())
	out, in := io.Pipe()
	var stderr bytes.Buffer
	ended := make(chan error)
	go func() {
		ended <- serve(ctx, []string{"-behaviour", "answers-in-bold,refuses-temperature", "-listen", "127.0.0.1:0", "-answer", "card_lost"}, in, &stderr)
	}()
	url, err := bufio.NewReader(out).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	for fields, want := range map[string]string{"": `"**card_lost**"`, `, "temperature": 0`: `"unsupported_parameter"`} {
		res, err := http.Post(strings.TrimSpace(url)+"/chat/completions", "application/json",
			strings.NewReader(`{"model": "any", "messages": [{"role": "user", "content": "p"}]`+fields+`}`))
		if err != nil {
			t.Fatal(err)
		}
		defer res.Body.Close()
		if body, err := io.ReadAll(res.Body); err != nil || !strings.Contains(string(body), want) {
			t.Errorf("%s: %s, error %v", fields, body, err)
		}
	}
	stop()
	if err := <-ended; err != nil || !strings.HasPrefix(stderr.String(), "2 requests") {
		t.Errorf("error %v, %q", err, &stderr)
	}
}

func TestArguments(t *testing.T) {
	var stdout, stderr bytes.Buffer
	if err := serve(t.Context(), []string{"-list"}, &stdout, &stderr); err != nil || strings.Count(stdout.String(), "\n") != len(modelserver.Behaviours()) {
		t.Errorf("%v\n%s", err, &stdout)
	}
	stdout.Reset()
	if err := serve(t.Context(), []string{"-markdown"}, &stdout, &stderr); err != nil || stdout.String() != modelserver.Table() {
		t.Errorf("%v\n%s", err, &stdout)
	}
	for wrong, want := range map[string]string{"-behaviour=thinks": "thinks-in-tags", "-listen=nowhere": "listen", "thinks-in-tags": "-behaviour", "-x": "not defined"} {
		if err := serve(t.Context(), []string{wrong}, &stdout, &stderr); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v", wrong, err)
		}
	}
}

// The behaviours that the README names are there.
func TestReadme(t *testing.T) {
	raw, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	named := regexp.MustCompile(`-behaviour ([a-z,-]+)`).FindAllSubmatch(raw, -1)
	for _, m := range named {
		for _, name := range strings.Split(string(m[1]), ",") {
			if _, err := modelserver.Find(name); err != nil {
				t.Error(err)
			}
		}
	}
	if len(named) == 0 {
		t.Error("the README names no behaviour")
	}
}
