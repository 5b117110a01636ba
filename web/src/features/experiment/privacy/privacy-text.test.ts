import { expect, test } from 'vitest'

import type { Round } from '@/api/types'

import { protectedRecords, spentEpsilon, sumText } from './privacy-text'

const GROUP: Round['groups'][number] = { name: 'group-1', members: 5, survivors: 5, dropped: [], refused: null }

test('a sum names the participants that dropped out', () => {
  expect(sumText({ groups: [{ ...GROUP, survivors: 4, dropped: ['Hospital E'] }] })).toBe('4 of 5, without Hospital E')
})

test('several sums have their names, and one that was left out its reason', () => {
  const far = { ...GROUP, name: 'group-2', refused: 'its norm is 9 times the median' }
  expect(sumText({ groups: [GROUP, far] })).toBe(
    'group-1: 5 of 5; group-2: 5 of 5, left out of the model: its norm is 9 times the median',
  )
})

test('noise protects an example or all examples of a person', () => {
  expect(protectedRecords('example')).toBe('each example')
  expect(protectedRecords('field:patient_id')).toBe('all examples with the same patient_id')
})

test('the spent ε is the last round’s; without an account it is unknown from the first round on', () => {
  const epsilon = { first: 4.1, last: 5.2, best: null }
  expect(spentEpsilon({ round: 2, metrics: { epsilon } })).toBe('5.20')
  expect(spentEpsilon({ round: 0, metrics: {} })).toBe('nothing')
  expect(spentEpsilon({ round: 1, metrics: {} })).toBe('an unknown part')
})
