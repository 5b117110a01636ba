import { expect, test } from 'vitest'

import { roleOf } from './roles'

test('a form that names no role asks for the one that reads only', () => {
  expect([roleOf('admin'), roleOf('king'), roleOf(null)]).toEqual(['admin', 'viewer', 'viewer'])
})
