package lsp

// The part of the protocol that is spoken here, after the Language Server Protocol
// 3.17, https://microsoft.github.io/language-server-protocol/. Lines count from 0,
// characters are UTF-16 code units.

type position struct {
	Line      int `json:"line"`
	Character int `json:"character"`
}

type textRange struct {
	Start position `json:"start"`
	End   position `json:"end"`
}

type location struct {
	URI   string    `json:"uri"`
	Range textRange `json:"range"`
}

type textEdit struct {
	Range   textRange `json:"range"`
	NewText string    `json:"newText"`
}

type documentID struct {
	URI string `json:"uri"`
}

type documentParams struct {
	TextDocument documentID `json:"textDocument"`
}

type positionParams struct {
	TextDocument documentID `json:"textDocument"`
	Position     position   `json:"position"`
}

type didOpenParams struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
		Text    string `json:"text"`
	} `json:"textDocument"`
}

type didChangeParams struct {
	TextDocument struct {
		URI     string `json:"uri"`
		Version int    `json:"version"`
	} `json:"textDocument"`
	ContentChanges []struct {
		Text string `json:"text"`
	} `json:"contentChanges"`
}

type initializeResult struct {
	Capabilities capabilities `json:"capabilities"`
	ServerInfo   serverInfo   `json:"serverInfo"`
}

type serverInfo struct {
	Name    string `json:"name"`
	Version string `json:"version"`
}

type capabilities struct {
	PositionEncoding   string            `json:"positionEncoding"`
	TextDocumentSync   syncOptions       `json:"textDocumentSync"`
	CompletionProvider completionOptions `json:"completionProvider"`
	HoverProvider      bool              `json:"hoverProvider"`
	DefinitionProvider bool              `json:"definitionProvider"`
	FormattingProvider bool              `json:"documentFormattingProvider"`
}

type syncOptions struct {
	OpenClose bool     `json:"openClose"`
	Change    int      `json:"change"` // 1: the whole text each time
	Save      struct{} `json:"save"`
}

type completionOptions struct {
	TriggerCharacters []string `json:"triggerCharacters"`
}

type publishParams struct {
	URI         string       `json:"uri"`
	Version     int          `json:"version"`
	Diagnostics []diagnostic `json:"diagnostics"`
}

type diagnostic struct {
	Range    textRange `json:"range"`
	Severity int       `json:"severity"` // 1 error, 2 warning
	Source   string    `json:"source"`
	Message  string    `json:"message"`
}

// The kinds of completions that are offered.
const (
	kindFunction = 3
	kindField    = 5
	kindVariable = 6
	kindModule   = 9 // a block
	kindProperty = 10
	kindValue    = 12
	kindKeyword  = 14
)

type completion struct {
	Label         string    `json:"label"`
	Kind          int       `json:"kind"`
	Detail        string    `json:"detail,omitempty"`
	Documentation *markup   `json:"documentation,omitempty"`
	TextEdit      *textEdit `json:"textEdit"`
	SortText      string    `json:"sortText"` // the order of the description
}

type markup struct {
	Kind  string `json:"kind"`
	Value string `json:"value"`
}

func markdown(text string) *markup { return &markup{Kind: "markdown", Value: text} }

type hover struct {
	Contents *markup   `json:"contents"`
	Range    textRange `json:"range"`
}
