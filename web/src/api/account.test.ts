// @vitest-environment jsdom
import { expect, test } from 'vitest'

import { roleOf } from './account'

test('a form without a role requests the read-only one', () => {
  expect([roleOf('admin'), roleOf('king'), roleOf(null)]).toEqual(['admin', 'viewer', 'viewer'])
})
