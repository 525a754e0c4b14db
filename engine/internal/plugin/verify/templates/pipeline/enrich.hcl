# A pipeline with the stage of this plugin, on data that came with it:
#
#   racflow run pipeline.hcl
#
# Passages are found by the words that this stage adds, too.

knowledge "docs" {
  source { path = "docs" }
  chunk {
    use = "markdown"
    config { size = 40 }
  }
  enrich "about" {
    use = "<<.Name>>/<<.Name>>"
    config { words = 5 }
  }
  embed { use = "hashing" }
  store { use = "local" }
}

pipeline "answers" {
  input { path = "questions.tsv" }
  retrieve "found" {
    from  = knowledge.docs
    top_k = 3
  }
}
