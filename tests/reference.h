/* SPDX-License-Identifier: Apache-2.0 */
/* tests/reference.h: REFERENCE starts a function that computes the results that
 * a test expects, makes its random operands, or compares elements.
 *
 * A build with sanitizers hardly optimises, and instruments each access. That
 * must be so for the code under test. A reference is a loop over all elements
 * that the test itself owns, and would take most of the time of a test. */
#ifndef BYI_TESTS_REFERENCE_H
#define BYI_TESTS_REFERENCE_H

#if (defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)) &&         \
    !defined(__clang__)
#define REFERENCE                                                              \
    __attribute__((optimize("O2"),                                             \
                   no_sanitize("address", "undefined", "thread"))) static
#else
#define REFERENCE static
#endif

#endif
