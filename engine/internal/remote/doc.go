// Package remote lets other processes use racflow: live keeps pipelines ready while their files and knowledge change,
// and serve answers requests with them.
package remote
