package milvus

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/racflow/racflow/sdk"
)

func TestConfigFaults(t *testing.T) {
	junk := filepath.Join(t.TempDir(), "junk.pem")
	must(t, os.WriteFile(junk, []byte("junk"), 0o600))
	for config, argument := range map[string]string{
		`{"address": "user:hunter2@host"}`:             "address",
		`{"address": "ftp://host"}`:                    "address",
		`{"address": ":19530"}`:                        "address",
		`{"address": "host/path"}`:                     "address",
		`{"prefix": "a_b"}`:                            "prefix",
		`{"token": "x", "user": "u", "password": "p"}`: "user",
		`{"user": "u"}`:                                "user",
		`{"index": ""}`:                                "index",
		`{"b": 2}`:                                     "b",
		`{"shards": 0}`:                                "shards",
		`{"batch_rows": 5000}`:                         "batch_rows",
		`{"batch_bytes": 100000000}`:                   "batch_bytes",
		`{"call_timeout": "10m"}`:                      "call_timeout",
		`{"connect_timeout": "0s"}`:                    "connect_timeout",
		`{"retry_time": "-1s"}`:                        "retry_time",
		`{"consistency": "weak"}`:                      "consistency",
		`{"ca": "` + junk + `"}`:                       "tls",
		`{"tls": true, "ca": "` + junk + `"}`:          "ca",
		`{"tls": true, "cert": "` + junk + `"}`:        "cert",
		`{"tls": true, "cert": "` + junk + `", "key": "` + junk + `"}`:    "cert",
		`{"address": "https://x", "ca": "/does/not/exist", "tls": false}`: "ca",
	} {
		_, err := Stage().Open(t.Context(), sdk.Setup{}, []byte(config))
		var fault *sdk.ArgumentError
		if !errors.As(err, &fault) || fault.Argument != argument {
			t.Errorf("%s: got %v, want a fault of %s", config, err, argument)
		} else if strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: the password is in the error: %v", config, err)
		}
	}
}

func TestEndpoints(t *testing.T) {
	for address, want := range map[string]endpoint{
		"localhost":              {"localhost:19530", false},
		"10.0.0.1:19000":         {"10.0.0.1:19000", false},
		"http://host":            {"host:19530", false},
		"tcp://[::1]:19530":      {"[::1]:19530", false},
		"https://in01.zilliz.io": {"in01.zilliz.io:443", true},
		"https://host:19530/":    {"host:19530", true},
	} {
		c := config{Address: address}
		if got, err := c.endpoint(); err != nil || got != want {
			t.Errorf("%s: %+v, %v", address, got, err)
		}
	}
}

// Which arguments are secret decides what is shown of them.
func TestSecretArguments(t *testing.T) {
	secret := map[string]bool{"password": true, "token": true}
	for _, a := range Stage().Arguments {
		if a.Secret != secret[a.Name] {
			t.Errorf("argument %s: secret is %v", a.Name, a.Secret)
		}
	}
}

// No error shows a secret, even if a server or a library quotes it.
func TestSecretsInErrors(t *testing.T) {
	s := &server{config: config{Password: "hunter2", Token: "tok-en"}}
	cause := &statusError{code: codeUnauthenticated, reason: "user x with hunter2 and tok-en"}
	for _, err := range []error{s.failed("search", cause), s.refused(cause), s.mask(cause)} {
		if strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "tok-en") {
			t.Errorf("%v", err)
		}
		var fault *statusError
		if !errors.As(err, &fault) {
			t.Errorf("%v lost its cause", err)
		}
	}
	if err := s.mask(context.Canceled); err != context.Canceled {
		t.Errorf("an error without secrets became %v", err)
	}
}
