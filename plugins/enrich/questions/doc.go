// Package questions is an enricher that has a language model ask what each passage
// answers: n questions, in the words of people who do not know it yet. What people
// ask is more similar to such a question than to the text that answers it. The method is that
// of doc2query (Nogueira et al., "Document Expansion by Query Prediction", 2019)
// with an instructed model. Package docexpand does the work.
//
// The messages are written with system.tmpl and prompt.tmpl, Go text/templates with the
// fields of docexpand.Data; files named in the config replace them.
package questions
