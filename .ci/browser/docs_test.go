package browser

import (
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/racflow/racflow/engine/internal/show/page"
)

// TestDocs: the page of the HTTP interface shows a description as text, asks nobody else, and may call the server.
func TestDocs(t *testing.T) {
	const description = `{"openapi": "3.1.0", "info": {"title": "racflow", "version": "1"}, "servers": [{"url": "/"}], "paths": {"/v1/pipelines": {"get": {
		"operationId": "listPipelines", "tags": ["pipelines"], "summary": "List </script><script>document.title = 'owned'</script>", "responses": {"200": {"description": "OK"}}}}}}`
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/docs" {
			_, _ = w.Write([]byte("called"))
			return
		}
		w.Header().Set("Content-Type", "text/html; charset=utf-8")
		if err := page.Docs("HTTP interface", []byte(description)).Write(w); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(server.Close)
	tab := Open(t, server.URL+"/docs")
	tab.Wait(`document.getElementById("docs").shadowRoot?.textContent.includes("List ")`)
	tab.Screenshot("docs")
	tab.Accessible()
	if got := Eval[string](tab, `fetch("/v1/pipelines").then((r) => r.text())`); got != "called" {
		t.Errorf("a call of the page gets %q", got)
	}
	if title := Eval[string](tab, `document.title`); title != "HTTP interface" {
		t.Errorf("the title is %q: a text was run", title)
	}
	tab.Quiet(server.URL + "/v1/pipelines")
}
