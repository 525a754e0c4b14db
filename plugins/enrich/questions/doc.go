// Package questions is an enricher that has a language model ask what each passage
// answers: n questions, in the words of people who do not know it yet. What people
// ask is nearer to a question than to the text that answers it. The method is that
// of doc2query (Nogueira et al., "Document Expansion by Query Prediction", 2019)
// with a model that is told what to do. Package docexpand says how.
//
// What the model is told stands in system.tmpl and prompt.tmpl. Files of one's own
// may replace them, Go text/templates with the fields of docexpand.Data.
package questions
