// @vitest-environment jsdom
import { beforeEach, expect, test } from 'vitest'

import { signsIn, takeToken } from './login-hash'

beforeEach(() => {
  window.history.replaceState(null, '', '/')
})

test('the token leaves the address bar, path and search stay', () => {
  window.history.replaceState(null, '', '/experiments/exp_1?x=bytes#token=s3cr%2Bet')
  expect(takeToken(window.location, window.history)).toBe('s3cr+et')
  expect(window.location.href).toMatch(/\/experiments\/exp_1\?x=bytes$/)
})

test('no history entry keeps the token', () => {
  const before = window.history.length
  window.history.replaceState(null, '', '/#token=secret')
  takeToken(window.location, window.history)
  expect(window.history.length).toBe(before)
})

test('an address without a token is left alone', () => {
  window.history.replaceState(null, '', '/#rounds')
  expect(takeToken(window.location, window.history)).toBeNull()
  expect(window.location.hash).toBe('#rounds')
})

test('a ticket is one too', () => {
  window.history.replaceState(null, '', '/#ticket=once')
  expect(signsIn(window.location.hash)).toBe(true)
  expect(takeToken(window.location, window.history)).toBe('once')
  expect(window.location.hash).toBe('')
  expect(signsIn('#rounds')).toBe(false)
})
