package document

import (
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
)

func TestText(t *testing.T) {
	for name, c := range map[string]struct{ raw, subject, want string }{
		"plain": {"Subject: =?ISO-8859-1?Q?Karten=FC?=\n =?UTF-8?B?YmVyc2ljaHQ=?=\nFrom: =?utf-8?q?J=C3=BCrgen?= <j@example.org>\nTo: a@example.org,\n b@example.org\nDate: Mon, 2 Mar 2026 10:00:00 +0100\nX-Spam: no\n\nHello,\n\n> a quote\n",
			"Kartenübersicht", "Subject: Kartenübersicht\nFrom: Jürgen <j@example.org>\nTo: a@example.org, b@example.org\nDate: Mon, 2 Mar 2026 10:00:00 +0100\n\nHello,\n\n> a quote\n"},
		"quoted-printable": {"Subject: x\nContent-Type: text/plain; charset=iso-8859-15\nContent-Transfer-Encoding: Quoted-Printable\n\n10 =A4 for a=\n card\n", "x", "Subject: x\n\n10 € for a card\n"},
		"base64":           {"Content-Type: text/plain; charset=koi8-r\nContent-Transfer-Encoding: base64\n\n y8HS\n1MEK\n", "", "\nкарта\n"},
		"8 bits":           {"Content-Type: text/plain\n\ncaf\xe9\n", "", "\ncafé\n"},
		"no such set":      {"Content-Type: text/plain; charset=klingon\n\ncafé\n", "", "\ncafé\n"},
		"a page": {"Content-Type: text/html; charset=windows-1252\n\n<nav><a href=1>Shop</a></nav><h1>Caf\xe9</h1><p>A lost card is blocked at once, and a new one comes by mail.", "",
			"\n# Café\n\nA lost card is blocked at once, and a new one comes by mail.\n"},
		"alternatives": {mixed("multipart/alternative", "Content-Type: text/plain\n\nplain\n", "Content-Type: text/html\n\n<p>page</p>\n"), "s", "Subject: s\n\nplain\n"},
		"a page alone": {mixed("multipart/alternative", "Content-Type: text/plain\n\n \n", "Content-Type: text/html\n\n<p>page</p>\n"), "s", "Subject: s\n\npage\n"},
		"attachments": {mixed("multipart/mixed", "Content-Type: text/plain\n\nSee these.\n", "Content-Type: text/plain; name=\"a.txt\"\nContent-Disposition: attachment; filename=\"=?utf-8?q?=C3=A4.txt?=\"\n\nsecret\n",
			"Content-Type: image/png\nContent-Disposition: inline; filename=logo.png\nContent-Transfer-Encoding: base64\n\nAAAA\n", "Content-Type: application/pdf\n\n%PDF\n", "Content-Disposition: attachment\n\nx\n", "\nA footer of the list.\n"), "s",
			"Subject: s\n\nSee these.\n\nA footer of the list.\n\nAttachments: ä.txt, logo.png, application/pdf, without a name\n"},
		"forwarded": {mixed("multipart/mixed", "\nSee below.\n", "Content-Type: message/rfc822\nContent-Disposition: attachment\n\nSubject: inner\n\nits text\n"), "s",
			"Subject: s\n\nSee below.\n\nForwarded message:\nSubject: inner\n\nits text\n"},
		"a body with a name":                 {"Content-Type: text/plain; name=message.txt\n\nThe meter is read in March.\n", "", "\nThe meter is read in March.\n"},
		"a page with a name":                 {mixed("multipart/related", "Content-Type: text/html; name=body.html\n\n<p>page</p>\n", "Content-Type: image/png; name=a.png\n\nx\n"), "s", "Subject: s\n\npage\n\nAttachments: a.png\n"},
		"names after a body":                 {mixed("multipart/mixed", "Content-Type: text/plain; name=body.txt\n\nSee it.\n", "Content-Type: text/plain; name=log.txt\n\nsecret\n"), "s", "Subject: s\n\nSee it.\n\nAttachments: log.txt\n"},
		"names of alternatives":              {mixed("multipart/alternative", "Content-Type: text/plain; name=a.txt\n\nNo page.\n", "Content-Type: text/html; name=a.html\n\n<p>The oak table leaves our house on Friday.</p>\n"), "s", "Subject: s\n\nThe oak table leaves our house on Friday.\n"},
		"a stub":                             {mixed("multipart/alternative", "Content-Type: text/plain\n\nSee https://example.org/view\n", "Content-Type: text/html\n\n<p>The oak table leaves our house on Friday.</p>\n"), "s", "Subject: s\n\nThe oak table leaves our house on Friday.\n"},
		"a stub beside a page with pictures": {mixed("multipart/alternative", "Content-Type: text/plain\n\nView it online.\n", "Content-Type: multipart/related; boundary=y\n\n--y\nContent-Type: text/html\n\n<table><tr><td><p>The oak table leaves our house on Friday.</p></td></tr></table>\n--y\nContent-Type: image/png; name=logo.png\n\nx\n--y--\n"), "s", "Subject: s\n\nThe oak table leaves our house on Friday.\n\nAttachments: logo.png\n"},
		"a page with a little more":          {mixed("multipart/alternative", "Content-Type: text/plain\n\nThe table leaves our house on Friday.\n", "Content-Type: text/html\n\n<p>The table leaves our house on Friday. Shop more at home.</p>\n"), "s", "Subject: s\n\nThe table leaves our house on Friday.\n"},
		"cut off":                            {strings.TrimSuffix(mixed("multipart/mixed", "\nOne.\n", "\nTwo"), "\n--=_x--\n"), "s", "Subject: s\n\nOne.\n\nTwo\n"},
	} {
		unread := Unread{}
		got, subject, err := Mail([]byte(c.raw), unread)
		if _, names, _ := strings.Cut(got, "Attachments: "); unread["attachment"] != len(strings.FieldsFunc(names, func(r rune) bool { return r == ',' })) {
			t.Errorf("%s: not read: %s", name, unread)
		}
		if err != nil || subject != c.subject {
			t.Errorf("%s: subject %q, %v", name, subject, err)
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s: %s", name, diff)
		}
	}
	deep := "Content-Type: multipart/mixed; boundary=x\n\n" + strings.Repeat("--x\nContent-Type: message/rfc822\n\nContent-Type: multipart/mixed; boundary=x\n\n", 100)
	inner := "Content-Type: text/plain\n\nx\n"
	for i := range 30 {
		b := string(rune('a'+i%26)) + strings.Repeat("y", i)
		inner = "Content-Type: multipart/mixed; boundary=" + b + "\n\n--" + b + "\n" + inner + "\n--" + b + "--\n"
	}
	many := mixed("multipart/mixed", strings.Split(strings.Repeat("\nx\n|", 2000), "|")...)
	for name, raw := range map[string]string{"no mail": "just some text", "nothing": "", "nested": inner, "many": many} {
		if got, _, err := Mail([]byte(raw), Unread{}); err == nil || !strings.Contains(err.Error(), "leave it out with exclude") {
			t.Errorf("%s: %.80q, %v", name, got, err)
		}
	}
	if _, _, err := Mail([]byte(deep), Unread{}); err != nil && !strings.Contains(err.Error(), "too many") {
		t.Errorf("messages in messages: %v", err)
	}
}

func mixed(kind string, parts ...string) string {
	raw := "Subject: s\nContent-Type: " + kind + "; boundary=\"=_x\"\n\nnot shown\n"
	for _, p := range parts {
		raw += "--=_x\n" + p
	}
	return raw + "\n--=_x--\n"
}

func FuzzText(f *testing.F) {
	f.Add([]byte("Subject: =?koi8-r?b?y8HS?=\nContent-Transfer-Encoding: base64\n\ny8HS"))
	f.Add([]byte(mixed("multipart/alternative", "Content-Type: text/html; charset=utf-16\n\n<p>x", "Content-Type: message/rfc822\n\nA: b\n\nc")))
	f.Fuzz(func(t *testing.T, raw []byte) {
		text, _, err := Mail(raw, Unread{})
		if err == nil && (!utf8.ValidString(text) || len(text) > 100*len(raw)+1000) {
			t.Errorf("%q became %q", raw, text)
		}
	})
}
