// Package mail makes text of messages in the format of mail (RFC 5322 with MIME, files named
// .eml): subject, sender, recipients and date as lines, then the body, then the names of the
// attachments. Of alternatives the plain text is taken, else the readable part of the HTML.
// Quoted replies stay. Encoded headers (RFC 2047), quoted-printable and base64 are decoded, and
// every character set that the WHATWG names.
//
// Attachments are not opened, but for messages that were forwarded; encrypted bodies come out as
// the names of their parts.
package mail
