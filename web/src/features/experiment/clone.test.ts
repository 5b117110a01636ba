import { expect, test } from 'vitest'

import { ApiProblem } from '@/api/problem'

import { clonePatch } from './clone'

function form(fields: Record<string, string>): FormData {
  const data = new FormData()
  for (const [name, value] of Object.entries(fields)) data.set(name, value)
  return data
}

test('the form becomes a merge patch of the specification', () => {
  expect(clonePatch(form({ name: ' again ', rounds: '20', changes: '' }))).toEqual({ name: 'again', rounds: 20 })
})

test('other changes go along, and the named fields win', () => {
  const changes = '{"algorithm": {"K": 8192, "basis": null}, "rounds": 1}'
  expect(clonePatch(form({ name: 'again', rounds: '20', changes }))).toEqual({
    algorithm: { K: 8192, basis: null },
    name: 'again',
    rounds: 20,
  })
})

test.each(['{"seed": }', '[1]', '3', 'null'])('%s is refused before it is sent', (changes) => {
  const refused = clonePatch(form({ name: 'again', rounds: '20', changes }))
  expect(refused).toBeInstanceOf(ApiProblem)
  expect(refused).toMatchObject({ code: 'spec.invalid' })
})
