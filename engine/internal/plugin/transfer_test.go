package plugin

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// TestSilence ends the connection to a server that stops in the middle of an answer.
func TestSilence(t *testing.T) {
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_, _ = w.Write([]byte("half")) // the client sees the result
		_ = http.NewResponseController(w).Flush()
		<-r.Context().Done()
	}))
	defer s.Close()
	client := &http.Client{Transport: Transport(10 * time.Millisecond)}
	response, err := client.Get(s.URL) //nolint:noctx // of this process
	if err == nil {
		_, err = io.ReadAll(response.Body)
		_ = response.Body.Close()
	}
	var network net.Error
	if !errors.As(err, &network) || !network.Timeout() {
		t.Errorf("got %v", err)
	}
}
