-- Asks a Neovim that is attached to racflow lsp what it sees of edited.racflow.hcl, and
-- writes that down; see TestNeovim.
local seen = {}
local function note(what, value) table.insert(seen, what .. ': ' .. tostring(value)) end
local function ask(method, line, character)
  local params = { textDocument = vim.lsp.util.make_text_document_params(), position = { line = line, character = character } }
  params.options = { tabSize = 2, insertSpaces = true }
  for _, answer in pairs(vim.lsp.buf_request_sync(0, method, params, 60000) or {}) do
    if answer.error then note(method, answer.error.message) end
    return answer.result
  end
end

vim.wait(60000, function() return #vim.diagnostic.get(0) > 0 end, 20)
for _, d in ipairs(vim.diagnostic.get(0)) do
  note('diagnostic', (d.lnum + 1) .. ':' .. (d.col + 1) .. ' ' .. d.message)
end
local labels = {}
for _, item in ipairs(ask('textDocument/completion', 2, 11) or {}) do table.insert(labels, item.label) end
note('completion', table.concat(labels, ' '))
local hover = ask('textDocument/hover', 3, 5)
note('hover', hover and hover.contents.value:gsub('\n.*', ''))
vim.api.nvim_buf_set_lines(0, 2, 3, false, { '    use = "soft"' })
vim.wait(60000, function() return #vim.diagnostic.get(0) == 1 end, 20)
note('mended', #vim.diagnostic.get(0))
for _, client in ipairs(vim.lsp.get_active_clients()) do
  vim.lsp.util.apply_text_edits(ask('textDocument/formatting', 0, 0) or {}, 0, client.offset_encoding)
end
note('formatted', vim.api.nvim_buf_get_lines(0, 2, 3, false)[1])
vim.fn.writefile(seen, 'seen')
vim.cmd('qa!')
