import { expect, test } from 'vitest'

import { isOpen, parseSubmitUrl, type SubmitUrlState, toggled } from './url-state'

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
  expect(isOpen({}, 'advanced')).toBe(false)
  const opened = toggled({}, 'server', true)
  expect(isOpen(opened, 'server')).toBe(true)
  expect(toggled(opened, 'server', false).open).toBeUndefined()
})

test('a clone shows its algorithm, until somebody closes it', () => {
  const clone: SubmitUrlState = { from: 'exp_1' }
  expect([isOpen(clone, 'advanced'), isOpen(clone, 'algorithm'), isOpen(clone, 'server')]).toEqual([true, true, false])
  const none = ['advanced', 'algorithm'].reduce((view, name) => toggled(view, name, false), clone)
  expect(none).toEqual({ from: 'exp_1', open: 'none' })
  expect(isOpen(none, 'advanced')).toBe(false)
})
