-- A report on households: one file, planned and asked with
--     idios plan report.sql --epsilon 4 --split quartiles=5,inequality=2,top=2
-- Statistics are released, with noise; what is computed from them costs nothing.

-- name: quartiles
SELECT region, tenure,
       PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY income) AS lower,
       MEDIAN(income) AS middle,
       PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY income) AS upper,
       ROUND(PERCENTILE_CONT(0.75) WITHIN GROUP (ORDER BY income)  -- released once, used twice
             / PERCENTILE_CONT(0.25) WITHIN GROUP (ORDER BY income), 2) AS spread
FROM households
GROUP BY 1, 2
ORDER BY middle DESC;

-- name: inequality
SELECT p10, p90, ROUND(p90 / p10, 2) AS ratio
FROM (SELECT PERCENTILE_CONT(0.1) WITHIN GROUP (ORDER BY income) AS p10,
             PERCENTILE_CONT(0.9) WITHIN GROUP (ORDER BY income) AS p90
      FROM households);

-- name: top
SELECT ROUND(KTH_LARGEST(income, 25), -3) AS twenty_fifth FROM households;

-- name: means
SELECT region, ROUND(AVG(income), -1) AS mean
FROM households
GROUP BY region
HAVING AVG(income) > 33000
ORDER BY mean DESC;

-- name: shares
/* Percentages of all income: a SELECT around the sums, which are released. */
SELECT ROUND(100 * SUM(CASE WHEN region = 'north' THEN total END) / SUM(total), 1) AS north,
       ROUND(100 * SUM(CASE WHEN region = 'west' THEN total END) / SUM(total), 1) AS west
FROM (SELECT region, SUM(income) AS total FROM households GROUP BY region) AS sums;

-- name: cars
SELECT tenure, ROUND(100 * SUM(car) / COUNT(*), 1) AS percent_with_car
FROM households
GROUP BY tenure
ORDER BY percent_with_car DESC;

-- name: ages
SELECT BIN(age, 20) AS age_from, COUNT(*) AS households
FROM households
GROUP BY age_from
ORDER BY households DESC
LIMIT 3;
