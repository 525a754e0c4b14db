# A pipeline with the stage of this plugin, on data that came with it:
#
#   racflow run pipeline.hcl
#
# This stage decides from the votes of two voters.

knowledge "requests" {
  source { path = "train.tsv" }
  embed { use = "hashing" }
  store { use = "local" }
}

pipeline "requests" {
  input { path = "test.tsv" }
  retrieve "near" { from = knowledge.requests }
  sample "neighbours" { use = "neighbours" }
  sample "prototype" { use = "prototype" }
  elect "request" {
    use = "<<.Name>>/<<.Name>>"
    config { least = 0.5 }
  }
}
