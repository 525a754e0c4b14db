package server

import (
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/milvus-io/milvus-sdk-go/v2/client"
)

func TestEndpoints(t *testing.T) {
	type endpoint struct {
		address string
		secure  bool
	}
	for address, want := range map[string]endpoint{
		"localhost":              {"localhost:19530", false},
		"10.0.0.1:19000":         {"10.0.0.1:19000", false},
		"http://host":            {"host:19530", false},
		"tcp://[::1]:19530":      {"[::1]:19530", false},
		"https://in01.zilliz.io": {"in01.zilliz.io:443", true},
		"https://host:19530/":    {"host:19530", true},
	} {
		c := Config{Address: address}
		if got, secure, err := c.endpoint(); err != nil || (endpoint{got, secure}) != want {
			t.Errorf("%s: %s, %v, %v", address, got, secure, err)
		}
	}
}

// No error shows a secret, even if a server or a library quotes it.
func TestSecretsInErrors(t *testing.T) {
	s := &Server{Config: Config{Password: "hunter2", Token: "tok-en"}, connected: &client.GrpcClient{}}
	cause := &Error{code: codeUnauthenticated, reason: "user x with hunter2 and tok-en"}
	failed := s.Call(t.Context(), "search", func(context.Context, *client.GrpcClient, int) error { return cause })
	for _, err := range []error{failed, s.connectError(cause), s.mask(cause)} {
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "tok-en") {
			t.Errorf("%v", err)
		}
		var e *Error
		if !errors.As(err, &e) {
			t.Errorf("%v lost its cause", err)
		}
	}
	if err := s.mask(context.Canceled); err != context.Canceled {
		t.Errorf("an error without secrets became %v", err)
	}
}
