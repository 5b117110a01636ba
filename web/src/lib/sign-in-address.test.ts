// @vitest-environment jsdom
import { beforeEach, expect, test } from 'vitest'

import { noteReturn, signsIn, takeCallback, takeToken } from './sign-in-address'

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

beforeEach(() => {
  sessionStorage.clear()
})

function at(address: string) {
  window.history.replaceState(null, '', address)
  return takeCallback(window.location, window.history, sessionStorage)
}

const shown = () => window.location.pathname + window.location.search

test('what the provider sent is taken out of the address', () => {
  expect(at('/sign-in/callback?code=a&state=b&session_state=c')).toMatchObject({ code: 'a', state: 'b', error: null })
  expect(shown()).toBe('/')
})

test('the page that was left is shown again, once', () => {
  window.history.replaceState(null, '', '/experiments/exp_1?x=seconds')
  noteReturn(window.location, sessionStorage)
  expect(at('/sign-in/callback?error=access_denied&state=b')).toMatchObject({
    error: 'access_denied',
    state: 'b',
    code: null,
  })
  expect(shown()).toBe('/experiments/exp_1?x=seconds')
  at('/sign-in/callback?code=a&state=b')
  expect(shown()).toBe('/')
})

test('no other page is a callback', () => {
  expect(at('/?code=a&state=b')).toBeNull()
  expect(shown()).toBe('/?code=a&state=b')
})

test('another site is never returned to', () => {
  sessionStorage.setItem('ferret.return-to', '//evil.example/page')
  expect(() => at('/sign-in/callback?code=a&state=b')).toThrow()
  expect(window.location.host).toBe('localhost:3000')
})
