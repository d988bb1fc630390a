/* SPDX-License-Identifier: Apache-2.0 */
/* decimal.c: numbers as the shortest decimal text from which they are read
 * back, in the "C" locale.
 *
 * Most numbers need one operation in long double for their digits, and one to
 * read them back: powers of ten to 10^27 are exact in its 64 bits (Clinger's
 * fast path, "How to Read Floating Point Numbers Accurately", PLDI 1990). A
 * result so near to the middle between two candidates that the rounding of this
 * operation could decide, and numbers with larger exponents, are left to printf
 * and strtod.
 */
#include "base.h"

#include <float.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A positive number digits[0].digits[1]digits[2]... * 10^exponent, with `count`
 * digits, as one integer. */
struct decimal {
    uint64_t digits;
    int count, exponent;
};

enum { MAX_POWER = LDBL_MANT_DIG >= 64 ? 27 : -1 }; /* -1: printf does all */

/* more than the relative error of an operation in long double */
static const long double slack = 0x1p-63L;

static const long double tens[] = {
    1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
    1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
    1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};

double byi_strtod(const char *text, char **end)
{
    /* "C" is built in: this neither allocates nor fails. */
    locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    double value = strtod_l(text, end, c);

    freelocale(c);
    return value;
}

bool byi_is_single(double value)
{
    return (double)(float)value == value;
}

/* x * 10^power, |power| <= MAX_POWER; sets *error to a bound of its error. */
static long double scale(long double x, int power, long double *error)
{
    const long double y = power < 0 ? x / tens[-power] : x * tens[power];

    *error = y * slack;
    return y;
}

/* Round value, which is positive and finite, to d->count digits. Returns
 * whether the result is certain. */
static bool round_digits(double value, struct decimal *d)
{
    int binary;

    frexp(value, &binary);
    /* at most one too small: log10(2) is 0.30103 */
    d->exponent = (int)floor((binary - 1) * 0.30102999);
    if (d->exponent < -MAX_POWER || d->exponent >= MAX_POWER)
        return false;
    if (d->exponent >= -1 ? (long double)value >= tens[d->exponent + 1]
                          : value * tens[-d->exponent - 1] >= 1)
        d->exponent++;
    const int power = d->count - 1 - d->exponent;
    if (power < -MAX_POWER || power > MAX_POWER)
        return false;
    long double error;
    const long double scaled = scale(value, power, &error);
    d->digits = (uint64_t)scaled;
    const long double rest = scaled - (long double)d->digits;
    d->digits += rest > 0.5L;
    if ((long double)d->digits >= tens[d->count]) {
        d->digits /= 10;
        d->exponent++;
    }
    return fabsl(rest - 0.5L) > error;
}

/* Print value with `count` digits in the "C" locale. */
static void print_digits(char text[32], double value, int count)
{
    const locale_t c = newlocale(LC_ALL_MASK, "C", (locale_t)0);
    const locale_t before = uselocale(c);
    char line[400]; /* GCC warns of truncation to 32 bytes */

    snprintf(line, sizeof line, "%.*g", count, value);
    memcpy(text, line, strlen(line) + 1);
    uselocale(before);
    freelocale(c);
}

/* Whether value, rounded to `count` digits, is read back as the same number, or
 * as the same float if `single`. */
static bool reads_back(double value, int count, bool single)
{
    struct decimal d = {.count = count};
    char text[32];

    if (round_digits(value, &d)) {
        const int power = d.exponent - (count - 1);
        if (power >= -MAX_POWER && power <= MAX_POWER) {
            long double error;
            const long double y = scale((long double)d.digits, power, &error);
            const double low = (double)(y - error);
            if (low == (double)(y + error))
                return single ? (float)low == (float)value : low == value;
        }
    }
    print_digits(text, value, count);
    const double parsed = byi_strtod(text, NULL);
    return single ? (float)parsed == (float)value : parsed == value;
}

/* Write d as printf's %g does, without the terminating NUL; returns the end. */
static char *write_decimal(char *to, const struct decimal *d)
{
    char digits[24], *at = digits + sizeof digits;
    uint64_t rest = d->digits;
    int n = d->count, exponent = d->exponent;

    for (int i = 0; i < d->count; i++, rest /= 10)
        *--at = (char)('0' + rest % 10);
    while (n > 1 && at[n - 1] == '0')
        n--;
    const bool scientific = exponent < -4 || exponent >= d->count;
    const int point = scientific ? 1 : exponent + 1; /* digits before it */
    if (point <= 0) {
        memcpy(to, "0.0000", 6);
        to += 2 - point;
    }
    for (int i = 0; i < n || i < point; i++) {
        if (i == point && point > 0)
            *to++ = '.';
        *to++ = i < n ? at[i] : '0';
    }
    if (!scientific)
        return to;
    *to++ = 'e';
    *to++ = exponent < 0 ? '-' : '+';
    exponent = abs(exponent); /* at most MAX_POWER */
    *to++ = (char)('0' + exponent / 10);
    *to++ = (char)('0' + exponent % 10);
    return to;
}

static bool is_power_of_two(double value)
{
    int exponent;

    return fabs(frexp(value, &exponent)) == 0.5;
}

size_t byi_decimal_text(char text[32], double value, bool single, int least)
{
    struct decimal d = {0};
    int most = single ? 9 : 17;
    char *to = text;

    if (value == 0) {
        strcpy(text, signbit(value) ? "-0" : "0");
        return strlen(text);
    }
    most = least > most ? least : most;
    /* More digits are never farther off, so a binary search finds the fewest.
     * A power of two needs a linear one: the interval of the texts that are
     * read as it is half as wide below it as above, so that a closer text below
     * may lie outside where a text above lies inside. */
    while (least < most) {
        const int count = is_power_of_two(value) ? least : (least + most) / 2;
        if (reads_back(fabs(value), count, single))
            most = count;
        else
            least = count + 1;
    }
    d.count = most;
    if (value < 0)
        *to++ = '-';
    if (!round_digits(fabs(value), &d)) {
        print_digits(text, value, most);
        return strlen(text);
    }
    to = write_decimal(to, &d);
    *to = '\0';
    return (size_t)(to - text);
}

/* The number of digits before the point; 1 if the number is printed with an
 * exponent. */
static int whole_digits(double value)
{
    int digits = 1;
    for (double limit = 10; limit <= 1e15; limit *= 10)
        digits += fabs(value) >= limit;
    return digits <= 15 ? digits : 1;
}

char *byi_float_text(char buf[32], double value, bool single)
{
    if (!isfinite(value)) {
        const char *text = isnan(value) ? "nan" : value < 0 ? "-inf" : "inf";
        return strcpy(buf, text);
    }
    byi_decimal_text(buf, value, single, whole_digits(value));
    return buf;
}
