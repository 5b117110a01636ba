import { expect, test } from 'vitest'

import { parseSearch, stringifySearch } from '@/lib/search-params'

import { chosenRuns, isHidden, MOST_RUNS, parseCompareUrl, toggleHidden, withoutRun, withRun } from './url-state'

const MANY = Array.from({ length: 23 }, (_, index) => `exp_${index}`)

test('a view survives the address, which stays readable', () => {
  const address =
    '?ids=exp_a,,exp_c&baseline=exp_a&metric=rouge_l&x=bytes&y=log&xscale=log&hidden=exp_c&groups=seeds&spec=all&bytes=total&way=down&scale=linear'
  expect(stringifySearch({ ...parseCompareUrl(parseSearch(address)) })).toBe(address)
})

test('what an address may not say is dropped', () => {
  const view = parseCompareUrl(parseSearch('?ids=&x=round&y=linear&groups=all&spec=1&bytes=&way=up&scale=log&metric='))
  expect(Object.values(view).filter((value) => value !== undefined)).toEqual([])
})

test('ids may be repeated, spaced and doubled', () => {
  expect(parseCompareUrl(parseSearch('?ids=a,+b,a&ids=c,,')).ids).toBe('a,b,,c')
})

test('a place is a colour: it stays when another run is removed, and the next takes the free one', () => {
  const view = { ids: 'a,b,c', baseline: 'b', hidden: 'b,c' }
  const without = withoutRun(view, 'b')
  expect(without).toEqual({ ids: 'a,,c', baseline: undefined, hidden: 'c' })
  expect(chosenRuns(without.ids).chosen).toEqual([
    { id: 'a', place: 0 },
    { id: 'c', place: 2 },
  ])
  expect(withRun(without, 'd').ids).toBe('a,d,c')
  expect(withRun({ ids: 'a' }, 'a').ids).toBe('a')
  expect(withoutRun({ ids: 'a' }, 'a').ids).toBeUndefined()
})

test('more than twenty are named, not compared', () => {
  const { chosen, over } = chosenRuns(MANY.join(','))
  expect(chosen).toHaveLength(MOST_RUNS)
  expect(over).toEqual(['exp_20', 'exp_21', 'exp_22'])
  const full = { ids: MANY.slice(0, MOST_RUNS).join(',') }
  expect(withRun(full, 'one_more')).toBe(full)
})

test('a run far behind empty places still has a colour', () => {
  expect(chosenRuns(`a${','.repeat(30)}b`).chosen).toEqual([
    { id: 'a', place: 0 },
    { id: 'b', place: 1 },
  ])
})

test('runs are hidden and shown again', () => {
  const hidden = toggleHidden({ ids: 'a,b' }, 'b')
  expect([isHidden(hidden, 'a'), isHidden(hidden, 'b')]).toEqual([false, true])
  expect(toggleHidden(hidden, 'b').hidden).toBeUndefined()
})
