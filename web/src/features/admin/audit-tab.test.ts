// @vitest-environment jsdom
import { expect, test } from 'vitest'

import { detailText } from './audit-tab'
import { parseAdminUrl } from './url-state'

test('a detail is one line, whatever it holds', () => {
  expect(detailText({ name: 'ada', enabled: false, tags: ['a'] })).toBe('name: ada, enabled: false, tags: ["a"]')
  expect(detailText({})).toBe('')
})

test('an address typed wrongly shows users, and filters nothing', () => {
  expect(parseAdminUrl({ tab: 'nonsense', actor: '' })).toEqual({})
  expect(parseAdminUrl({ tab: 'audit', action: 'user.changed' })).toEqual({ tab: 'audit', action: 'user.changed' })
})
