// @vitest-environment jsdom
import { expect, test } from 'vitest'

import { forgetDraft, keepDraft, keptDraft } from './use-draft'

test('each original has a draft, and an unreadable draft is ignored', () => {
  const storage = window.sessionStorage
  keepDraft(undefined, { spec: { seed: 1 } }, storage)
  keepDraft('exp_1', { spec: { seed: 2 }, project: 'hearts' }, storage)
  expect(keptDraft(undefined, storage)?.spec).toEqual({ seed: 1 })
  expect(keptDraft('exp_1', storage)).toEqual({ spec: { seed: 2 }, project: 'hearts' })
  forgetDraft('exp_1', storage)
  expect(keptDraft('exp_1', storage)).toBeUndefined()
  storage.setItem('ferret-draft-new', '{')
  expect(keptDraft(undefined, storage)).toBeUndefined()
})
