// @vitest-environment jsdom
import { afterEach, beforeEach, expect, test, vi } from 'vitest'

import { FakeEventSource } from '@/lib/testing/fake-event-source'

import { openEventStream, type StreamStatus } from './event-stream'

beforeEach(() => {
  vi.useFakeTimers()
  FakeEventSource.install()
})

afterEach(() => {
  vi.useRealTimers()
  vi.unstubAllGlobals()
})

function follow() {
  const messages: string[] = []
  const statuses: StreamStatus[] = []
  const close = openEventStream({
    url: '/stream',
    after: 40,
    types: ['round.opened'],
    onMessage: (data) => messages.push(data),
    onStatus: (status) => statuses.push(status),
  })
  return { messages, statuses, close }
}

test('hands on the events of the named types', () => {
  const { messages, statuses } = follow()
  FakeEventSource.latest.open()
  FakeEventSource.latest.send({ seq: 41, type: 'round.opened' })
  FakeEventSource.latest.send({ seq: 42, type: 'something.else' })
  expect(messages).toEqual(['{"seq":41,"type":"round.opened"}'])
  expect(statuses).toEqual(['connecting', 'live'])
})

test('leaves reconnecting to the browser while that tries', () => {
  const { statuses } = follow()
  FakeEventSource.latest.fail(FakeEventSource.CONNECTING)
  vi.advanceTimersByTime(60_000)
  expect(FakeEventSource.opened).toHaveLength(1)
  FakeEventSource.latest.open()
  expect(statuses).toEqual(['connecting', 'reconnecting', 'live'])
})

test('opens a new stream after the last event if the browser gave up', () => {
  follow()
  FakeEventSource.latest.send({ seq: 41, type: 'round.opened' })
  FakeEventSource.latest.fail(FakeEventSource.CLOSED)
  vi.advanceTimersByTime(5000)
  expect(FakeEventSource.opened.map(({ url }) => url)).toEqual(['/stream?after=40', '/stream?after=41'])
})

test('stays closed once closed', () => {
  const { close } = follow()
  FakeEventSource.latest.fail(FakeEventSource.CLOSED)
  close()
  vi.advanceTimersByTime(60_000)
  expect(FakeEventSource.opened).toHaveLength(1)
})

test('after three failed connects it tries by itself, more and more seldom, and goes on where it was', () => {
  vi.spyOn(Math, 'random').mockReturnValue(0)
  const { statuses } = follow()
  const fail = () => {
    FakeEventSource.latest.fail(FakeEventSource.CONNECTING)
  }
  const tried = (milliseconds: number) => {
    vi.advanceTimersByTime(milliseconds)
    return FakeEventSource.opened.length
  }
  fail()
  fail()
  expect(tried(60_000)).toBe(1)
  fail()
  expect([tried(4999), tried(1)]).toEqual([1, 2])
  fail()
  expect([tried(9999), tried(1)]).toEqual([2, 3])
  FakeEventSource.latest.open()
  FakeEventSource.latest.send({ seq: 41, type: 'round.opened' })
  expect(statuses).toEqual(['connecting', 'reconnecting', 'reconnecting', 'polling', 'polling', 'live'])
  expect(FakeEventSource.latest.url).toBe('/stream?after=40')
  fail()
  expect(statuses.at(-1)).toBe('reconnecting')
})

test('tries at once when the machine is back on its network', () => {
  follow()
  FakeEventSource.latest.fail(FakeEventSource.CLOSED)
  window.dispatchEvent(new Event('online'))
  expect(FakeEventSource.opened).toHaveLength(2)
  window.dispatchEvent(new Event('online'))
  vi.advanceTimersByTime(60_000)
  expect(FakeEventSource.opened).toHaveLength(2)
})
