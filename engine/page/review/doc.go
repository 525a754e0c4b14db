// Package review serves the page on which people decide (package engine/review), to the browsers of
// this machine.
//
// The server is for its own page alone. It listens on a loopback address; its URL has a random
// token in the fragment, which browsers send nowhere. The page takes it from there and gives it with
// each call, in the header Authorization: there is no cookie that another site, or a server at
// another port, could use. A name of the machine other than localhost or a loopback address is
// refused, against DNS rebinding, and so is a call from another origin; nothing is ever allowed to
// other origins (CORS).
//
//	GET  /             the page, which holds no data
//	GET  /api/queue    cases, labels, and what is to be known
//	GET  /api/case     one case: its whole text, and what made its answer
//	POST /api/decide   review.Request
//	POST /api/undo     takes back what a page did last
//	POST /api/at       which case a page shows, so that others are offered another one
//	GET  /api/events   decisions and pages as they change, as server-sent events
//	POST /api/finish   ends the review
//
// The page shows one case at a time and is worked by keyboard. Several people, and several pages,
// decide at the same time: each sees what the others decide as it happens.
package review
