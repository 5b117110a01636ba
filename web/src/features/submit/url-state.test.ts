import { expect, test } from 'vitest'

import { isOpen, parseSubmitUrl, toggled } from './url-state'

test('an address typed by hand never breaks the page', () => {
  expect(parseSubmitUrl({ from: '', shape: 'huge', as: 'toml', open: ['a', 'b'] })).toEqual({})
  expect(parseSubmitUrl({ from: 'exp_1', shape: 'llama2-7b', as: 'cli', open: 'server' })).toEqual({
    from: 'exp_1',
    shape: 'llama2-7b',
    as: 'cli',
    open: 'server',
  })
})

test('sections open and close, and the usual ones are not mentioned', () => {
  expect(isOpen({}, 'model')).toBe(true)
  expect(isOpen({}, 'server')).toBe(false)
  const opened = toggled({}, 'server', true)
  expect(isOpen(opened, 'server')).toBe(true)
  expect(toggled(opened, 'server', false).open).toBeUndefined()
  const none = ['model', 'dataset', 'participants', 'algorithm'].reduce((view, name) => toggled(view, name, false), {})
  expect(none).toEqual({ open: 'none' })
  expect(isOpen(none, 'model')).toBe(false)
})
